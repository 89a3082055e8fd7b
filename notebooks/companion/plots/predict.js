(box) => {
  const { labels, sentence } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const [guess, answer] = box.querySelectorAll("input");
  const after = box.querySelectorAll(".after");
  const label = (slider) => {
    const value = labels[slider.value];
    slider.nextElementSibling.textContent = value;
    slider.setAttribute("aria-valuetext", value);
  };
  guess.addEventListener("input", () => label(guess));
  box.querySelector("button").addEventListener("click", () => {
    after.forEach((part) => { part.hidden = false; });
    box.querySelector("[role=status]").textContent = sentence.replace("{}", labels[guess.value]);
  });
  after.forEach((part) => { part.hidden = true; });
  [guess, answer].forEach(label);
}
