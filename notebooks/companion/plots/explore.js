(box) => {
  const { values, start, together, frames, pictures } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const sliders = [...box.querySelectorAll("input")];
  const images = [...box.querySelectorAll("img")];
  const defaults = start.split(",");
  const position = () => sliders.map((slider) => slider.value).join(",");
  const reset = (stays) => {
    if (position() in frames) return;
    sliders.forEach((slider, i) => { if (!stays(i)) slider.value = defaults[i]; });
  };
  const show = (moved) => {
    reset((i) => i < together || i === moved);
    reset((i) => i === moved);
    sliders.forEach((slider, i) => {
      const value = values[i][slider.value];
      slider.nextElementSibling.textContent = value;
      slider.setAttribute("aria-valuetext", value);
    });
    images.forEach((image, i) => { image.src = "data:image/webp;base64," + pictures[frames[position()][i]]; });
  };
  sliders.forEach((slider, i) => slider.addEventListener("input", () => show(i)));
  show();
}
