/* Elements of a page.  Text is set as text only. */
"use strict";
(function () {
  /* attributes: "text" is the element's text, "on…" a listener; one that is null or false is left out.  children: null is left out. */
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "text") made.textContent = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }
  window.Elements = {element};
})();
