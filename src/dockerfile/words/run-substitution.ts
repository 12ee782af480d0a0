import { BoughError } from "../../errors.ts";
import { type Place, ShellScan } from "./shell-scan.ts";
import { expandWord, type Lookup } from "./words.ts";

/** A command line may grow by so much and no more. */
const maxGrowth = 1024 * 1024;
/** Operators with the same meaning here and in every shell that knows them, before an operand that is nothing but text. */
const plainOperator = /^(?::?[-+]|##?|%%?|\/\/?(?![#%/]|$))[^'"$`\\{}~[\]()!&]{0,1000}$/;
const reservedWord =
  /^(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|in|time|function|select|coproc)$/;

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
    const value = isShells ? undefined : valueOf(name, operator, lookup);
    // Text would become part of the name of a `$NAME` that was kept in front of it.
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

/** What the reference comes to, or undefined where that is the shell's to say. */
function valueOf(name: string, operator: string, lookup: Lookup): string | undefined {
  const value = lookup(name);
  if (value === undefined || operator === "") return value;
  if (/^:?\?/.test(operator)) return value === "" && operator.startsWith(":") ? undefined : value;
  if (!plainOperator.test(operator)) return undefined;
  // Shells may leave out the second slash.
  const end = /^\/+[^/]*$/.test(operator) ? "/}" : "}";
  return expandWord(`\${${name}${operator}${end}`, lookup, "\\");
}

/** Returns whether the shell reads `value`, written between these characters, as nothing but the text that it is. */
function isText(value: string, place: Place, before: string, after: string): boolean {
  if (place === "opaque") return false;
  if (place === "double quotes") return !/["$`\\\p{Cc}]/u.test(value);
  if (place === "arithmetic") return /^\w+$/.test(value);
  // Together with its neighbours a piece of the delimiter could end the document.
  if (typeof place === "object") return !/[$`\\\p{Cc}]/u.test(value) && !place.delimiter.includes(value);
  if (/[{(#~]/.test(after)) return false;
  // Digits right in front of `<` or `>` say which file is redirected.
  if (/[<>]/.test(after) && /^\d*$|[\s;&|(){}`]\d*$/.test(before + value)) return false;
  if (place === "argument") return /^[\p{L}\p{N}\p{M}\-_./:,+@%^=*?[\] \t]*$/u.test(value);
  if (place === "word") return /^[\p{L}\p{N}\p{M}\-_./:,+@%^=]+$/u.test(value);
  // Neither an option of `sh -c`, nor an assignment, nor a word of the shell's own.
  if (!/^[\w./][\w./+-]*$/.test(value) || !/^[\s;&|)/.-]?$/.test(after)) return false;
  return /\w/.test(before) ? /[\d./]/.test(value) : !reservedWord.test(value);
}
