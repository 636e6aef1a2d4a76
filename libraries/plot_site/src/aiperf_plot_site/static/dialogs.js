/* Dialogs by keys: focus goes round inside, Escape closes, and focus goes back to what opened it. */
"use strict";
(function () {
  const FOCUSABLE = "button, input, select, textarea, a[href], [tabindex='0']";

  function named(each) { return each.getAttribute("aria-label") || each.textContent; }

  /* What opened it, or what has its name where the page was drawn anew since. */
  function giveBack(opener, name) {
    const same = opener.isConnected ? opener : [...document.querySelectorAll(opener.tagName)].find((each) => named(each) === name);
    (same || document.getElementById("main")).focus();
  }

  function open(dialog) {
    if (dialog.open) return;
    const opener = document.activeElement || document.body, name = named(opener);
    dialog.addEventListener("close", () => setTimeout(() => { if (!dialog.open) giveBack(opener, name); }), {once: true});
    dialog.showModal();
  }

  for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const inside = [...dialog.querySelectorAll(FOCUSABLE)].filter((each) => !each.disabled && each.offsetParent !== null);
    const [first, last, now] = [inside[0], inside[inside.length - 1], document.activeElement];
    const to = event.shiftKey ? (now === first || now === dialog ? last : null) : now === last ? first : null;
    if (to) { event.preventDefault(); to.focus(); }
  });

  window.Dialogs = {open};
})();
