import { BoughError } from "../../errors.ts";
import { type ReferencePosition, ShellScan } from "./shell-scan.ts";
import { expandWord, type Lookup } from "./words.ts";

/** The number of characters by which a command line may grow. */
const maxGrowth = 1024 * 1024;
/** Operators with the same meaning here and in every shell that has them, with an operand of plain text. */
const plainOperator = /^(?::?[-+]|##?|%%?|\/\/?(?![#%/]|$))[^'"$`\\{}~[\]()!&]{0,1000}$/;
const reservedWord =
  /^(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|in|time|function|select|coproc)$/;

/**
 * Replaces the declared variables in the command line of a shell-form RUN. `lookup` must know only declared names, and each of
 * them must be in the command's environment with the same value.
 *
 * The result means the same to the shell as the original line with these variables set. Each `$NAME`, `${NAME}` and
 * `${NAME<operator>}` is replaced by its value, unless that could change the meaning. These references stay unchanged, and the
 * shell finds the same value in its environment:
 * - names without a value here, `$(cmd)`, `$1`, `$?`, `$((1 + 1))` and everything else that belongs to the shell;
 * - references inside single quotes, after a backslash, in comments, and in here-documents with a quoted delimiter;
 * - a name that the line itself sets anywhere (`V=1`, `for V in`, `read V`, `export V`, `${V:=1}`, `unset V`);
 *   all names if the line reads settings by `.`, `source` or `eval`;
 * - a value that the shell would not read as plain text at this place: with quotes, `$`, `;`, a redirection, or blanks
 *   that would split a word where the variable's value would not be split;
 * - all references outside quotes if the line sets IFS, which splits values of variables but never plain text;
 * - `${#NAME}`, `${NAME:0:3}` and other operators or operands that only the shell understands;
 * - `${NAME<operator>}` of a declared name without a value, for which `isEmpty` is true: `$NAME` itself becomes empty;
 * - names for which `isSecret` is true, since every user of the machine can read a command line, but not another user's
 *   environment. The exception is `${NAME/a/b}`, which not every shell understands.
 */
export function expandRunLine(
  line: string,
  lookup: Lookup,
  escapeCharacter: string,
  isSecret: (name: string) => boolean = () => false,
  isEmpty: (name: string) => boolean = () => false,
): string {
  if (!line.includes("$")) return line;
  const { references, setNames, isUnclear } = new ShellScan(line);
  if (isUnclear) return line;
  let result = "";
  let copied = 0;
  let endOfKeptName = -1;
  for (const { start, end, name, operator, place } of references) {
    const before = line.charAt(start - 1);
    const isShells =
      before === "\\" ||
      before === escapeCharacter ||
      setNames.has(name) ||
      (setNames.has("IFS") && (place === "argument" || place === "command" || place === "word")) ||
      (isSecret(name) && !operator.startsWith("/"));
    const isNothing = operator === "" && isEmpty(name);
    const value = isShells ? undefined : (valueOf(name, operator, lookup) ?? (isNothing ? "" : undefined));
    // The text would extend the name of an unreplaced `$NAME` right before it.
    const isJoined = start === endOfKeptName && /^$|^\w/.test(value ?? "");
    if (value === undefined || isJoined || !isText(value, place, before, line.charAt(end))) {
      if (!line.startsWith("}", end - 1)) endOfKeptName = end;
      continue;
    }
    result += line.slice(copied, start) + value;
    copied = end;
    if (result.length > copied + maxGrowth) {
      throw new BoughError("the command line is too long once its variables are replaced", { kind: "usage" });
    }
  }
  return result + line.slice(copied);
}

/**
 * Replaces the variables in the words of an exec-form RUN. No shell runs, so unknown names become empty. Everything else stays
 * unchanged, even `$1` and `$?`. The script of a shell's `-c` is treated as a shell-form RUN.
 */
export function expandExecWords(
  words: readonly string[],
  lookup: Lookup,
  escapeCharacter: string,
  isSecret?: (name: string) => boolean,
  isEmpty?: (name: string) => boolean,
): string[] {
  const [program = ""] = words;
  const isShell = /(^|\/)(sh|ash|bash|dash|ksh|mksh|zsh)$/.test(program);
  const option = words.findIndex((word, index) => index > 0 && /^-[a-zA-Z]*c[a-zA-Z]*$/.test(word));
  const script = isShell && option > 0 ? option + 1 : 0;
  return words.map((word, index) => {
    if (script > 0 && index === script)
      return expandRunLine(word, lookup, escapeCharacter, isSecret, isEmpty);
    return expandExecWord(word, lookup);
  });
}

function expandExecWord(word: string, lookup: Lookup): string {
  return word.replace(
    /\\.|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)([^}]*)\})/gs,
    (written, bare: string | undefined, braced: string | undefined, operator = "") => {
      const name = bare ?? braced;
      if (name === undefined) return written;
      return valueOf(name, operator, lookup) ?? (operator === "" ? "" : written);
    },
  );
}

/** Returns a reference's value, or `undefined` if only the shell can evaluate it. */
function valueOf(name: string, operator: string, lookup: Lookup): string | undefined {
  const value = lookup(name);
  if (value === undefined || operator === "") return value;
  if (/^:?\?/.test(operator)) return value === "" && operator.startsWith(":") ? undefined : value;
  if (!plainOperator.test(operator)) return undefined;
  // The second slash is optional in shells.
  const end = /^\/+[^/]*$/.test(operator) ? "/}" : "}";
  return expandWord(`\${${name}${operator}${end}`, lookup, "\\");
}

/** True if the shell reads `value`, between these two characters, as plain text. */
function isText(value: string, place: ReferencePosition, before: string, after: string): boolean {
  if (place === "opaque") return false;
  if (place === "double quotes") return !/["$`\\\p{Cc}]/u.test(value);
  if (place === "arithmetic") return /^\w+$/.test(value);
  // A part of the delimiter could, together with its neighbours, end the here-document.
  if (typeof place === "object") return !/[$`\\\p{Cc}]/u.test(value) && !place.delimiter.includes(value);
  if (/[{(#~]/.test(after)) return false;
  // Digits right before `<` or `>` are a file descriptor.
  if (/[<>]/.test(after) && /^\d*$|[\s;&|(){}`]\d*$/.test(before + value)) return false;
  if (place === "argument") return /^[\p{L}\p{N}\p{M}\-_./:,+@%^=*?[\] \t]*$/u.test(value);
  if (place === "word") return /^[\p{L}\p{N}\p{M}\-_./:,+@%^=]+$/u.test(value);
  // The value must not be an option of `sh -c`, an assignment or a reserved word.
  if (!/^[\w./][\w./+-]*$/.test(value) || !/^[\s;&|)/.-]?$/.test(after)) return false;
  return /\w/.test(before) ? /[\d./]/.test(value) : !reservedWord.test(value);
}
