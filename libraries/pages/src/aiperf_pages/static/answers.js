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

  function headers() { return token ? {Authorization: `Bearer ${token}`} : {}; }

  async function get(path) {
    const answer = await fetch(path, {headers: headers(), cache: "no-store"});
    if (!answer.ok) throw new Error(await sentence(answer));
    return answer;
  }

  async function sentence(answer) {
    try { return (await answer.json()).detail || answer.statusText; } catch { return `${answer.status} ${answer.statusText}`; }
  }
  window.Answers = {get, headers, sentence, hasToken: () => token !== ""};
})();
