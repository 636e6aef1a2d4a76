/* Answers of this server.  The token comes in the fragment of the URL and is kept for this window. */
"use strict";
(function () {
  let token = "";
  try {
    const given = decodeURIComponent(location.hash.slice(1));
    if (/^[!-~]{16,}$/.test(given)) {
      sessionStorage.setItem("aiperf-token", given);
      history.replaceState(null, "", location.pathname + location.search);
    }
    token = sessionStorage.getItem("aiperf-token") || "";
  } catch { token = location.hash.slice(1); }

  async function get(path, fields) {
    const query = new URLSearchParams(Object.entries(fields || {}).filter(([, value]) => value !== "" && value !== 0));
    const answer = await fetch(`${path}?${query}`, {headers: token ? {Authorization: `Bearer ${token}`} : {}, cache: "no-store"});
    if (answer.ok) return answer.json();
    let sentence = `${answer.status} ${answer.statusText}`;
    try { sentence = (await answer.json()).detail || sentence; } catch { /* the status says it */ }
    throw new Error(sentence);
  }
  window.Site = {get};
})();
