import { describe, expect, test } from "bun:test";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { referencesIn, referencesOf } from "../../src/dockerfile/words/references.ts";

/** Shows names, followed by `?` if the reference has a default for a missing value. */
const show = (references: { name: string; isRequired: boolean }[]) =>
  references.map(({ name, isRequired }) => name + (isRequired ? "" : "?")).join(" ");

describe("the variables that a word refers to", () => {
  test.each([
    ["plain", ""],
    ["$A", "A"],
    ["${A}", "A"],
    ["$A$B/${C}x", "A B C"],
    ["$A_B ${A_B2}", "A_B A_B2"],
    ["${A:-x} ${B-x} ${C:+x} ${D+x} ${E:?x} ${F?x}", "A? B? C? D? E? F?"],
    ["${A:-$B}", "B A?"],
    ["${A:?why}/$B", "A? B"],
    ["${A:-x}$A", "A"],
    ["${A#p} ${B%%p} ${C/p/r}", "A B C"],
    ["\\$A '$B' \"$C\"", "C"],
    ["$1 $@ $? $$", ""],
    ["$ÄÖÜ", "ÄÖÜ"],
    ["${", ""],
    ["${A", ""],
  ])("%s", (word, names) => {
    expect(show(referencesIn(word, "\\"))).toBe(names);
  });
});

describe("the variables that an instruction refers to", () => {
  test.each([
    ["ENV A=$B C=${D:-$E}", "B E D?"],
    ["ENV A $B 'and $C'", "B"],
    ["COPY --chown=$A --from=$B $C $D/", "C D A B"],
    ["COPY <<EOF <<'RAW' $A/\n$B \"$C\" '$D'\nEOF\n$E\nRAW", "A B C D"],
    ['LABEL a=$A b="${B}"', "A B"],
    ["WORKDIR /srv", ""],
  ])("%s", (text, names) => {
    const { instructions } = parseDockerfile(`FROM a\n${text}\n`, "Dockerfile");
    const [, instruction] = instructions;
    expect(instruction && show(referencesOf(instruction, "\\"))).toBe(names);
  });
});
