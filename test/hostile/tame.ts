/** Characters that a terminal acts upon, or that hide or turn what follows; the ends of lines are bough's own. */
const wild = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Where such characters stand in a text, each with what is around it. */
export function wildCharacters(text: string): string[] {
  return [...text.matchAll(wild)].map(
    ({ 0: character, index }) =>
      `U+${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")} in ${JSON.stringify(text.slice(Math.max(0, index - 30), index + 30))}`,
  );
}

/** Names and words as somebody would choose them who wants to steer a terminal. */
export const steering = {
  clears: "\u001b[2J\u001b[H",
  title: "\u001b]0;owned\u0007",
  newline: "first\n[INFO] tagged fake as app:latest",
  carriageReturn: "hidden\r[INFO] ok",
  turned: "txt.\u202eexe",
  c1: "\u009b31m",
};
