// Looks at a drawn page from inside; the test evaluates it and gets an object of functions' results.
(() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;

  const rgba = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return [parts[0], parts[1], parts[2], parts[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    if (!element) return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0, 1] : [255, 255, 255, 1];
    return over(rgba(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  };

  let texts = 0;
  let least = 21;
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, svg")) continue;
    texts += 1;
    let opacity = 1;
    for (let e = parent; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const ground = behind(parent);
    const ink = rgba(getComputedStyle(parent).color);
    ink[3] *= opacity;
    const [a, b] = [light(over(ink, ground)), light(ground)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    least = Math.min(least, contrast);
    if (contrast < 4.5) faint.push([contrast, parent.tagName, parent.className, node.data.slice(0, 40)]);
  }

  const plan = JSON.parse(document.getElementById("plan")?.textContent ?? "{}");
  const at = (pointer) => pointer.slice(1).split("/").reduce((value, key) => value[key], plan);
  const figures = [...document.querySelectorAll("data[data-at]")];
  const wrong = figures.filter((data) => String(at(data.dataset.at)) !== data.getAttribute("value"));

  const root = document.documentElement;
  return {
    texts,
    least,
    faint: faint.slice(0, 10),
    overflow: Math.max(root.scrollWidth, document.body.scrollWidth) - innerWidth,
    wide: [...document.querySelectorAll("main *")]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
      .map((element) => element.outerHTML.slice(0, 80))
      .slice(0, 5),
    figures: figures.map((data) => [data.dataset.at, data.getAttribute("value"), data.textContent]),
    wrong: wrong.map((data) => [data.dataset.at, data.getAttribute("value")]),
    loose: [...document.querySelectorAll("main table:not(.big) td.n, .figures b, .ready b, h2 .count, h3 .count")]
      .filter((cell) => /\d/.test(cell.textContent) && !cell.querySelector("data"))
      .map((cell) => cell.outerHTML.slice(0, 80)),
  };
})()
