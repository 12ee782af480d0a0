/** Writes JSON as Go's encoding/json does: with characters escaped that mean something in HTML. */
export function goJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
