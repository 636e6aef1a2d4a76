/* A ZIP of files that are stored as they are (APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.16). */
"use strict";
(function () {
  const table = Array.from({length: 256}, (_, byte) => { let c = byte; for (let bit = 0; bit < 8; bit += 1) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1; return c >>> 0; });
  function crc(bytes) { let c = 0xffffffff; for (const byte of bytes) c = table[(c ^ byte) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; }
  function fields(...pairs) {
    const bytes = new Uint8Array(pairs.reduce((sum, [size]) => sum + size, 0)), view = new DataView(bytes.buffer);
    let at = 0;
    for (const [size, value] of pairs) { if (size === 2) view.setUint16(at, value, true); else view.setUint32(at, value, true); at += size; }
    return bytes;
  }
  /* files: [{name, bytes: Uint8Array}]. */
  function zip(files) {
    const parts = [], heads = [];
    let offset = 0;
    for (const {name, bytes} of files) {
      const text = new TextEncoder().encode(name), sum = crc(bytes);
      const about = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, sum], [4, bytes.length], [4, bytes.length], [2, text.length], [2, 0]];
      const head = fields([4, 0x04034b50], ...about);
      heads.push(fields([4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]), text);
      parts.push(head, text, bytes);
      offset += head.length + text.length + bytes.length;
    }
    const size = heads.reduce((sum, part) => sum + part.length, 0);
    const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, size], [4, offset], [2, 0]);
    return new Blob([...parts, ...heads, end], {type: "application/zip"});
  }
  window.Zip = {zip};
})();
