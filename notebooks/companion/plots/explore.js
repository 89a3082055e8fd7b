(box) => {
  const { values, frames } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const sliders = [...box.querySelectorAll("input")];
  const images = [...box.querySelectorAll("img")];
  const show = () => {
    sliders.forEach((slider, i) => {
      const value = values[i][slider.value];
      slider.nextElementSibling.textContent = value;
      slider.setAttribute("aria-valuetext", value);
    });
    const pictures = frames[sliders.map((slider) => slider.value).join(",")];
    images.forEach((image, i) => { image.src = "data:image/webp;base64," + pictures[i]; });
  };
  sliders.forEach((slider) => slider.addEventListener("input", show));
  show();
}
