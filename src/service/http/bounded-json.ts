/** Parses JSON of an untrusted server. Its length is limited elsewhere, the memory that its values take is limited here. */

/** Lists, objects, and their members: each takes memory that its few characters don't show. */
const maxMembers = 4_000_000;
const maxDepth = 256;
/** A shorter text is harmless, whatever it contains. */
const harmlessCharacters = 64 * 1024;

/** Thrown instead of a SyntaxError for JSON that would take more memory than any answer is worth. */
export class ExcessiveJsonError extends Error {
  override readonly name = "ExcessiveJsonError";
}

/** Parses JSON; throws an ExcessiveJsonError for text that is nested too deep or has too many members. */
export function parseBoundedJson(text: string): unknown {
  if (text.length > harmlessCharacters) checkStructure(text);
  return JSON.parse(text);
}

function checkStructure(text: string): void {
  let depth = 0;
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case openBracket:
      case openBrace:
        depth++;
        members++;
        if (depth > maxDepth) throw new ExcessiveJsonError(`JSON that is nested more than ${maxDepth} deep`);
        break;
      case closeBracket:
      case closeBrace:
        depth--;
        break;
      case comma:
        members++;
        break;
    }
    if (members > maxMembers) throw new ExcessiveJsonError(`JSON of more than ${maxMembers} values`);
  }
}

/** Returns the index at which the string that begins at `start` ends, or at which the text ends. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === backslash) backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
