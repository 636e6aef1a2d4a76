/* Answers of the routes of pictures. */
"use strict";
(function () {
  async function get(path, fields) {
    const query = new URLSearchParams(Object.entries(fields || {}).filter(([, value]) => value !== "" && value !== 0));
    return (await window.Answers.get(`${path}?${query}`)).json();
  }
  window.Site = {get};
})();
