import { readFlags } from "../flags.ts";
import type { FromInstruction } from "../instruction.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import { splitAtBlanks } from "../words/words.ts";

const stageNameForm = /^[a-z][a-z0-9-_.]*$/;

/** Parses `FROM [--platform=P] IMAGE [AS NAME]`. */
export function parseFrom(statement: Statement): FromInstruction {
  const flags = readFlags(statement, { platform: "text" });
  const words = splitAtBlanks(statement.args.text, statement.args.offset);
  const [image, as, stage] = words;
  let stageName: string | undefined;
  if (words.length === 3 && as?.text.toUpperCase() === "AS" && stage !== undefined) {
    stageName = stage.text.toLowerCase();
    if (!stageNameForm.test(stageName)) {
      statement.report({
        message: `invalid name for build stage: "${stage.text}", name can't start with a number or contain symbols`,
        expected: "a letter, then letters, digits, '-', '_' and '.'",
        at: placeOf(stage),
      });
    }
  } else if (words.length !== 1) {
    const surplus = as ?? statement.writtenName;
    const message = "FROM requires either one or three arguments";
    statement.report({ message, expected: "FROM image or FROM image AS name", at: placeOf(surplus) });
  }
  const base = baseOf(statement, "FROM", flags.list);
  return { ...base, image: image?.text ?? "", stageName, platform: flags.text("platform") || undefined };
}
