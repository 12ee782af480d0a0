import { BoughError } from "../../errors.ts";
import type { Lookup } from "../text/lexer.ts";
import { parsePattern, replaceMatches, trimPrefix, trimSuffix } from "./pattern.ts";
import type { WordStart } from "./shell-command.ts";
import { type Reference, scanShell } from "./shell-scan.ts";

/** A name without braces at the end of a text. */
const openName = /\$\w+$/;
/** A command line may grow by so much and no more. */
const maximumGrowth = 1024 * 1024;

/**
 * The command line of a shell-form RUN with its declared variables replaced. `lookup` knows declared
 * names only; every one of them must be in the command's environment, with the same value.
 *
 * The rule: the result means to the shell what the line as written means with these variables set; in it every `$NAME`, `${NAME}` and `${NAME<operator>}` is replaced by its value, unless replacing could
 * change that meaning. Such a reference stays as it is, and the shell finds the same value in its environment:
 * - names without a value here, `$(cmd)`, `$1`, `$?`, `$((1 + 1))` and all else that is the shell's;
 * - inside single quotes, behind a backslash, in comments, in here-documents with a quoted delimiter;
 * - a name that the line sets itself anywhere (`V=1`, `for V in`, `read V`, `export V`, `${V:=1}`, `unset V`);
 *   all names where it reads settings by `.`, `source` or `eval`;
 * - a value that the shell would read as more than text where it stands: quotes, `$`, `;`, a redirection, and blanks
 *   where they would split a word that the shell doesn't;
 * - all references outside of quotes where IFS is set: it splits what a variable holds, and never plain text;
 * - `${#NAME}`, `${NAME:0:3}` and other operators or operands that only the shell understands;
 * - names that `isSecret` knows: every user of the machine may read a command line, and nobody else's environment. But for
 *   `${NAME/a/b}`, which not every shell understands.
 */
export function expandRunLine(
  line: string,
  lookup: Lookup,
  escapeCharacter: string,
  isSecret: (name: string) => boolean = () => false,
): string {
  if (!line.includes("$")) return line;
  const { pieces, set } = scanShell(line);
  if (set.mayBeAny) return line;
  const splitsByItself = set.names.has("IFS");
  let result = "";
  // Text that comes next would become part of the name of a `$NAME` that was left in front of it.
  let endsInName = false;
  for (const [index, piece] of pieces.entries()) {
    if (typeof piece === "string") {
      if (piece !== "") endsInName = openName.test(piece);
      result += piece;
      continue;
    }
    const before = line.charAt(piece.start - 1);
    const isEscaped = before === "\\" || before === escapeCharacter;
    const isSplit = splitsByItself && piece.quoting === "none";
    const isReplaceable =
      !isEscaped &&
      !isSplit &&
      !set.names.has(piece.name) &&
      !(isSecret(piece.name) && isKnownToShell(piece));
    const value = isReplaceable ? valueOf(piece, lookup) : undefined;
    const after = pieces[index + 1];
    const following = typeof after === "string" ? after : "";
    const isJoined: boolean = endsInName && (value === "" || /^\w/.test(value ?? ""));
    const isReplaced: boolean = value !== undefined && !isJoined && isPlain(value, piece, following);
    result += isReplaced ? value : piece.written;
    endsInName = !isReplaced && openName.test(piece.written);
    if (result.length > line.length + maximumGrowth) {
      throw new BoughError("the command line is too long once its variables are replaced", { kind: "usage" });
    }
  }
  return result;
}

/**
 * The words of an exec-form RUN. There is no shell that knows the variables, so unknown names are empty; all
 * else in a word stays as it is, `$1` and `$?` too. The script of a shell's `-c` is treated as a shell-form RUN.
 */
export function expandExecWords(
  words: readonly string[],
  lookup: Lookup,
  escapeCharacter: string,
  isSecret?: (name: string) => boolean,
): string[] {
  const [program = ""] = words;
  const isShell = /(^|\/)(sh|ash|bash|dash|ksh|mksh|zsh)$/.test(program);
  const option = words.findIndex((word, index) => index > 0 && /^-[a-zA-Z]*c[a-zA-Z]*$/.test(word));
  const script = isShell && option > 0 ? option + 1 : 0;
  return words.map((word, index) => {
    if (script > 0 && index === script) return expandRunLine(word, lookup, escapeCharacter, isSecret);
    return expandExecWord(word, lookup);
  });
}

function isKnownToShell({ operator }: Reference): boolean {
  return !operator.startsWith("/");
}

function expandExecWord(word: string, lookup: Lookup): string {
  return word.replace(
    /\\.|\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)([^}]*)\})/gs,
    (written, bare: string | undefined, braced: string | undefined, operator = "") => {
      const name = bare ?? braced;
      if (name === undefined) return written;
      return valueOf({ name, operator }, (wanted) => lookup(wanted)) ?? (operator === "" ? "" : written);
    },
  );
}

/** What the reference comes to, or undefined where that is the shell's to say. */
function valueOf(
  { name, operator }: Pick<Reference, "name" | "operator">,
  lookup: Lookup,
): string | undefined {
  const value = lookup(name);
  if (value === undefined || operator === "") return value;
  const [, colon, sign = "", operand = ""] = /^(:?)([-+?]|##?|%%?|\/\/?)(.*)$/s.exec(operator) ?? [];
  const isSet = colon !== ":" || value !== "";
  switch (sign) {
    case "-":
      return isSet ? value : plainOperand(operand);
    case "+":
      return isSet ? plainOperand(operand) : "";
    case "?":
      return isSet ? value : undefined;
    case "#":
    case "##":
    case "%":
    case "%%":
      return colon === "" ? trimmed(value, sign, operand) : undefined;
    case "/":
    case "//":
      return colon === "" ? replaced(value, sign, operand) : undefined;
    default:
      return undefined;
  }
}

function trimmed(value: string, sign: string, operand: string): string | undefined {
  const pattern = plainPattern(operand);
  if (pattern === undefined) return undefined;
  return (sign.startsWith("#") ? trimPrefix : trimSuffix)(value, pattern, sign.length === 2);
}

function replaced(value: string, sign: string, operand: string): string | undefined {
  const separator = operand.indexOf("/");
  const pattern = plainPattern(separator < 0 ? operand : operand.slice(0, separator));
  const replacement = plainOperand(separator < 0 ? "" : operand.slice(separator + 1));
  // To bash a leading # or % ties the pattern to an end, and & stands for what was found.
  if (pattern === undefined || replacement === undefined || /^[#%]|^\/|^$/.test(operand)) return undefined;
  if (replacement.includes("&")) return undefined;
  return replaceMatches(value, pattern, replacement, { all: sign === "//", limit: maximumGrowth });
}

/** An operand that is nothing but text. */
function plainOperand(operand: string): string | undefined {
  return /['"$`\\{}~]/.test(operand) ? undefined : operand;
}

/** A pattern that means the same here as in every shell: those know brackets too. */
function plainPattern(operand: string) {
  if (/['"$`\\{}~[\]()!]/.test(operand)) return undefined;
  const pattern = parsePattern(operand);
  return "error" in pattern ? undefined : pattern;
}

const reservedWords = new Set(
  "if then else elif fi do done case esac while until for in time function select coproc ! { } [[ ]]".split(
    " ",
  ),
);

/** Whether the shell reads `value`, written in the place of the reference, as nothing but the text that it is. */
function isPlain(value: string, reference: Reference, following: string): boolean {
  const { quoting, delimiter } = reference;
  switch (quoting) {
    case "double":
      return !/["$`\\\p{Cc}]/u.test(value);
    case "heredoc":
      // Together with its neighbours a piece of the delimiter could end the document.
      return !/[$`\\\p{Cc}]/u.test(value) && !delimiter.includes(value);
    case "arithmetic":
      return /^[\w. ]*$/.test(value);
    case "none":
      return isPlainUnquoted(value, reference, following);
  }
}

function isPlainUnquoted(value: string, reference: Reference, following: string): boolean {
  const { atCommandStart, splitsWords, wordStart } = reference;
  const next = following.charAt(0);
  if (!/^[\p{L}\p{N}\p{M}\-_./:,+@%^=*?[\] \t]*$/u.test(value)) return false;
  if (!splitsWords && /[*?[ \t]/.test(value)) return false;
  // A shell that knows braces reads them before it looks at variables.
  if (wordStart.hasBrace || next === "{") return false;
  if ((next === "#" || next === "~") && (value === "" ? wordStart.isEmpty : /[ \t]$/.test(value)))
    return false;
  if ((next === "<" || next === ">") && isFileNumber(value, wordStart)) return false;
  if (!atCommandStart || wordStart.hasEqualsSign) return true;
  // A name that is put together is never assigned to.
  if (/^[^\s;|&<>()]*=/.test(value + following)) return false;
  if (!wordStart.isEmpty) return true;
  // As the first word of a command it must not vanish, turn into the shell's own word or into an option of `sh -c`.
  const [command = ""] = value.trim().split(/[ \t]/, 1);
  return command !== "" && !/^[-+]/.test(command) && !reservedWords.has(command);
}

/** Digits right in front of `<` or `>` are no text: they say which file is redirected. */
function isFileNumber(value: string, wordStart: WordStart): boolean {
  return wordStart.isNumber ? /(^|[ \t])\d*$/.test(value) : /[ \t]\d*$/.test(value);
}
