/* What the run tells: server-sent events read by fetch, which can send the token. */
"use strict";
(function () {
  const FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 5000;
  const {get, headers, sentence, hasToken} = window.Answers;

  async function post(path) {
    const answer = await fetch(path, {method: "POST", headers: headers()});
    if (!answer.ok) throw new Error(await sentence(answer));
    return answer.json();
  }

  /* Call on(kind, document) for each event, again and again until over() says so; state(text) tells how the connection is. */
  async function listen(path, on, over, state) {
    let wait = FIRST_WAIT_MS;
    while (!over()) {
      try {
        const answer = await get(path);
        state("");
        wait = FIRST_WAIT_MS;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        for (;;) {
          const {value, done} = await reader.read();
          if (done) break;
          text += value;
          let end;
          while ((end = text.indexOf("\n\n")) >= 0) {
            const block = text.slice(0, end);
            text = text.slice(end + 2);
            let kind = "", data = "";
            for (const line of block.split("\n")) {
              if (line.startsWith("event: ")) kind = line.slice(7);
              else if (line.startsWith("data: ")) data += line.slice(6);
            }
            if (kind) on(kind, JSON.parse(data));
          }
        }
      } catch (error) {
        if (!over()) state(error instanceof TypeError ? "no connection to the run; trying again" : error.message);
      }
      if (over()) break;
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(LONGEST_WAIT_MS, wait * 2);
    }
  }

  window.Feed = {get, post, listen, hasToken};
})();
