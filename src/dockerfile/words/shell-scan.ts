/**
 * The place of a reference. Without quotes: `command`, in a command's first word; `argument`, in a word that blanks in a value
 * would split; `word`, in a word that they would not split; `opaque`, after `{` or `~`, which some shells expand first.
 */
export type ReferencePosition =
  | "command"
  | "argument"
  | "word"
  | "opaque"
  | "double quotes"
  | "arithmetic"
  | { delimiter: string };

/** `$NAME` or `${NAME...}` that the shell would expand, from `start` to `end` in the script. */
interface ShellReference {
  start: number;
  end: number;
  name: string;
  /** The text after the name inside braces: `:-word`, `#pattern`, or empty. */
  operator: string;
  place: ReferencePosition;
}

/** The kind of a command's next word. `names`: the name of a variable that is set. */
type NextWord = "command" | "argument" | "word" | "names";

const unquoted = "'\"";
const wordEnds = " \t\n;&|()<>";
/** The maximum nesting of a script in which variables are replaced. */
const maxDepth = 100;

const nameForm = /[A-Za-z_]\w*/y;
const heredocForm = /<<(-?)[ \t]*((?:\\.|'[^']*'|"[^"]*"|[^\s;&|<>()'"\\])+)/sy;
const assignment = /([A-Za-z_]\w*)(?:\[[^\];&|\n]*\])?\+?=/y;
const loop = /(?:for|select)[\s\\]+(\w+)/y;
/** Words after which a command starts, as after the number of a redirected file. */
const leadWord = /(?:if|then|else|elif|do|while|until|!|\{|time|command|builtin|exec)(?=\s)|\d+(?=[<>])/y;
const setter =
  /(?:export|local|readonly|declare|typeset|read|unset|getopts|mapfile|readarray|printf\s+-v)(?=\s)/y;
/** Commands that may set names which a scan can't find. */
const unclearSetter = /(?:\.|source|eval|let|trap|alias|function|coproc)(?=\s)/y;
const setterArgument = /["'\\]?(?:([A-Za-z_]\w*)(?![\w$`{])|[-+\d])/y;
const arithmeticAssignment = /(?<![=!<>])=(?!=)|<<=|>>=|\+\+|--/;

/** Finds the references that a POSIX shell would expand in a script. Never fails: text that is not a script has none. */
export class ShellScan {
  readonly references: ShellReference[] = [];
  /** Names that the script or every shell sets. */
  readonly setNames = new Set(["PWD", "OLDPWD", "REPLY", "OPTARG", "OPTIND"]);
  /** True if the script may set names that are not in its text, or if shells parse it differently. */
  isUnclear = false;
  private text: string;
  private position = 0;
  private depth = 0;
  private readonly heredocs: { delimiter: string; isQuoted: boolean; tabs: string }[] = [];

  constructor(script: string) {
    this.text = script;
    while (this.position < this.text.length) this.scanCommands();
  }

  /** Scans commands up to and including the unquoted character that closes them. */
  private scanCommands(close?: ")" | "`"): void {
    const start = this.position;
    const outerCount = this.references.length;
    const open: string[] = [];
    const comment = close === "`" ? /#[^\n`]*/y : /#[^\n]*/y;
    let next: NextWord = "command";
    let isTarget = false;
    for (let character = this.peek(); character !== ""; character = this.peek()) {
      if (character === close && (close === "`" || open.length === 0)) break;
      if (this.take(/\\\n/y) || this.take(comment) || this.takeHeredocStart()) continue;
      if (!wordEnds.includes(character)) {
        const [place, following]: [ReferencePosition, NextWord] = isTarget
          ? ["word", next]
          : this.startWord(next, open);
        next = following;
        isTarget = false;
        this.scanWord(place, close);
      } else if (this.take(/[<>][<>&|]*/y)) isTarget = true;
      else {
        this.position++;
        if (character === " " || character === "\t") continue;
        next = "command";
        isTarget = false;
        this.endCommand(character, open);
      }
    }
    this.position++;
    // Inside backticks, an escaped `$` may still be expanded.
    if (close === "`" && this.text.slice(start, this.position).includes("\\"))
      this.references.length = outerCount;
  }

  /** Scans a word up to the character that ends it, or that closes the commands. */
  private scanWord(start: ReferencePosition, close: string | undefined): void {
    let place = start;
    for (;;) {
      const character = this.peek();
      if (character === "" || character === close || wordEnds.includes(character)) return;
      if (this.take(/\\\n/y)) continue;
      if (character === "=" && place === "argument") place = "word";
      if (this.take(/[{~](?!\/)/y)) place = "opaque";
      else this.scanPart(unquoted, place);
    }
  }

  /** Records what a character that ends a command opens or closes. */
  private endCommand(character: string, open: string[]): void {
    // Bash's `((...))` sets names without a `$` or an assignment word.
    if (character === "(" && this.peek() === "(") this.isUnclear = true;
    if (character === "(") open.push(character);
    // The parenthesis after a case's pattern closes nothing.
    if (character === ")" && open.at(-1) === "(") open.pop();
    if (character === "\n") this.scanHeredocs();
  }

  /** Records the names that the word starting here sets. Returns its position, and the kind of the next word. */
  private startWord(next: NextWord, open: string[]): [ReferencePosition, NextWord] {
    if (next === "argument") return [next, next];
    if (next === "word") return [next, this.match(/in\s/y) ? "command" : next];
    if (next === "names") {
      const argument = this.match(setterArgument);
      if (argument === null) this.isUnclear = true;
      else this.setNames.add(argument[1] ?? "");
      return ["word", next];
    }
    const assigned = this.match(assignment);
    const name = (assigned ?? this.match(loop))?.[1];
    if (name !== undefined) this.setNames.add(name);
    if (assigned !== null) return ["word", "command"];
    if (this.match(leadWord)) return ["command", "command"];
    if (this.match(unclearSetter)) this.isUnclear = true;
    if (this.match(setter)) return ["command", "names"];
    if (this.match(/esac(?!\w)/y) && open.at(-1) === "case") open.pop();
    if (this.match(/\[\[\s/y)) return ["command", "word"];
    if (!this.match(/case\s/y)) return ["command", "argument"];
    open.push("case");
    return ["command", "word"];
  }

  /** Scans text up to and including `close`. Returns false if the script ends first. */
  private scanText(close: string, quotes: string, place: ReferencePosition): boolean {
    while (this.peek() !== "" && this.peek() !== close) this.scanPart(quotes, place);
    return this.position++ < this.text.length;
  }

  /** Scans an escape, an expansion, a text in one of `quotes`, or plain text. */
  private scanPart(quotes: string, place: ReferencePosition): void {
    const character = this.peek();
    if (this.take(/[\w./:,@%+-]+/y)) return;
    this.position++;
    if (++this.depth > maxDepth) {
      this.isUnclear = true;
      this.position = this.text.length;
    }
    if (character === "\\") this.position++;
    else if (character === "$") this.scanDollar(quotes, place);
    else if (character === "`") this.scanCommands("`");
    else if (quotes.includes(character)) {
      if (character === '"') this.scanText('"', "", "double quotes");
      else this.position = this.text.indexOf("'", this.position) + 1 || this.text.length;
    }
    this.depth--;
  }

  private scanDollar(quotes: string, place: ReferencePosition): void {
    const start = this.position - 1;
    if (this.take(/\(\(/y)) this.scanArithmetic();
    else if (this.take(/\(/y)) this.scanCommands(")");
    else if (this.take(/\{/y)) {
      const outerCount = this.references.length;
      const name = this.take(nameForm)?.[0] ?? "";
      const operatorStart = this.position;
      // Inside double quotes a single quote is plain text, except in patterns.
      const isClosed = this.scanText("}", /[#%/]/.test(this.peek()) ? unquoted : quotes || '"', place);
      // References inside are replaced or left to the shell with the whole.
      this.references.length = outerCount;
      const operator = this.text.slice(operatorStart, this.position - 1);
      if (/^:?=/.test(operator)) this.setNames.add(name);
      if (isClosed && name !== "") this.references.push({ start, end: this.position, name, operator, place });
    } else {
      // Bash's `$'...'` has its own escapes.
      if (this.peek() === "'" && quotes === unquoted) this.isUnclear = true;
      const name = this.take(nameForm)?.[0];
      if (name === undefined) this.take(/[0-9@*#?$!-]/y);
      else this.references.push({ start, end: this.position, name, operator: "", place });
    }
  }

  /** Scans `$((...))` after its opening parentheses. */
  private scanArithmetic(): void {
    const start = this.position;
    for (let open = 2; open > 0 && this.peek() !== ""; ) {
      if (this.peek() === "(") open++;
      if (this.peek() === ")") open--;
      this.scanPart("", "arithmetic");
    }
    const text = this.text.slice(start, this.position);
    // Text with quotes may also be a group of commands.
    if (/['"]/.test(text)) this.isUnclear = true;
    if (!arithmeticAssignment.test(text)) return;
    for (const [name] of text.matchAll(/[A-Za-z_]\w*/g)) this.setNames.add(name);
  }

  private takeHeredocStart(): boolean {
    const [whole, dash, written = ""] = this.take(heredocForm) ?? [];
    if (whole === undefined) return false;
    const delimiter = written.replace(/\\(.)/gs, "$1").replace(/['"]/g, "");
    this.heredocs.push({ delimiter, isQuoted: /['"\\]/.test(written), tabs: dash === "-" ? "\t*" : "" });
    return true;
  }

  /** Scans the bodies of the here-documents that a line opened. */
  private scanHeredocs(): void {
    for (const { delimiter, isQuoted, tabs } of this.heredocs.splice(0)) {
      const { text } = this;
      const lastLine = new RegExp(`(?<![^\\n])${tabs}${RegExp.escape(delimiter)}(?![^\\n])`, "g");
      lastLine.lastIndex = this.position;
      const end = lastLine.exec(text)?.index ?? text.length;
      this.text = text.slice(0, end);
      if (!isQuoted) this.scanText("", "", { delimiter });
      // An expansion in the body extends beyond it: shells disagree on where the body ends.
      if (this.position > end + 1) this.isUnclear = true;
      this.text = text;
      this.position = Math.max(end, lastLine.lastIndex);
    }
  }

  private peek(): string {
    return this.text.charAt(this.position);
  }

  /** Matches a sticky expression here. */
  private match(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.position;
    return form.exec(this.text);
  }

  private take(form: RegExp): RegExpExecArray | null {
    const found = this.match(form);
    this.position += found?.[0].length ?? 0;
    return found;
  }
}
