// Returns the texts whose contrast is below 4.5 (WCAG 2), and the number of all texts.
(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const low = [];
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.matches('script, style') || !element.checkVisibility()) continue;
    texts += 1;
    const colours = [rgba(getComputedStyle(element).color), background(element)].map(luminance);
    const ratio = (Math.max(...colours) + 0.05) / (Math.min(...colours) + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${element.className} ${text.slice(0, 40)}`);
  }
  return { low, texts };
})();
