// Search results show the text around a hit; a formula in it would be TeX.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const toText = Search.htmlToText;
  Search.htmlToText = (html, anchor) =>
    toText(html.replace(/<(span|div) class="math [^>]*>[^<]*<\/\1>/g, " … "), anchor);
});
