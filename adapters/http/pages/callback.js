"use strict";
// Selects the whole address at a click, and shows the copy button where the browser has a clipboard.
(() => {
  const button = document.getElementById("copy");
  const field = document.getElementById("callback");
  field.addEventListener("click", () => field.select());
  const copied = document.getElementById("copied");
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.focus();
    field.select();
    await navigator.clipboard.writeText(field.value);
    copied.textContent = copied.dataset.copied;
  });
})();
