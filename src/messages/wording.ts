/** Messages in which options and commands are data: each door into bough names them as its users write them. */
import { quote } from "../programs/quote.ts";

/** An option of bough: `--network host` on the command line. */
export interface OptionTerm {
  readonly option: string;
  /** The letter by which the command line names it; of flags that are given together, all letters. */
  readonly letter?: string;
  readonly value?: string;
}

/** A command of bough: `bough ps --all` on the command line. */
export interface CommandTerm {
  /** Its name, with those of its groups: `session show`. */
  readonly command: string;
  readonly options?: readonly OptionTerm[];
  /** What follows the options. */
  readonly words?: readonly string[];
  /** A placeholder, such as `build:<hash>`, is not quoted. */
  readonly session?: string | { readonly placeholder: string };
  /** The options that choose its service. */
  readonly service?: readonly string[];
  /** True on a line of its own, which is to be pasted. */
  readonly isLine?: boolean;
}

export type Term = OptionTerm | CommandTerm;

/** What follows `lead`, with `separator` between. If a door can say none of it, the lead is left out, too. */
interface Series {
  readonly lead: string;
  readonly separator: string;
  readonly items: readonly Message[];
}

/** A `Wording` in another one is a clause: a door that lacks one of its terms leaves it out. */
type Part = string | number | Term | Wording | Series;

/** Text for users. */
export type Message = string | Wording;

export class Wording {
  readonly parts: readonly Part[];

  constructor(parts: readonly Part[]) {
    this.parts = parts;
  }

  /** Returns it in the words of the command line. */
  toString(): string {
    return render(this, commandLineWords) ?? "";
  }

  toJSON(): string {
    return this.toString();
  }
}

/** The tag of a template with terms and clauses in it. */
export function wording(texts: TemplateStringsArray, ...parts: readonly Part[]): Wording {
  return new Wording(texts.flatMap((text, at) => [text, ...parts.slice(at, at + 1)]));
}

/** Joins sentences; `undefined` if there are none. */
export function sentences(messages: readonly (Message | undefined)[]): Message | undefined {
  return series(messages, " ");
}

/** Joins lines, with a line before them. */
export function lines(messages: readonly (Message | undefined)[], lead?: string): Message | undefined {
  return series(messages, "\n", lead === undefined ? "" : `${lead}\n`);
}

function series(
  messages: readonly (Message | undefined)[],
  separator: string,
  lead = "",
): Message | undefined {
  const items = messages.filter((message) => message !== undefined);
  return items.length < 2 && lead === "" ? items[0] : new Wording([{ lead, separator, items }]);
}

/**
 * Returns what a door calls a term, `undefined` if it has nothing like it.
 *
 * @param before the text before the term
 */
export type WordsOf = (term: Term, before: string) => string | undefined;

/** Returns a message in the words of a door, `undefined` if nothing is left to be said. */
export function render(message: Message, wordsOf: WordsOf, before = ""): string | undefined {
  if (typeof message === "string") return message;
  let text = "";
  // What follows a clause that is left out at the beginning.
  const joined = (next: string) => (isFirstLeftOut && before + text === "" ? next.trimStart() : next);
  let isFirstLeftOut = false;
  for (const part of message.parts) {
    if (typeof part === "string" || typeof part === "number") text += joined(String(part));
    else if (part instanceof Wording) {
      const clause = render(part, wordsOf, before + text);
      isFirstLeftOut ||= clause === undefined && text === "";
      text += joined(clause ?? "");
    } else if ("items" in part) text += renderSeries(part, wordsOf, before + text);
    else {
      const words = wordsOf(part, before + text);
      if (words === undefined) return undefined;
      text += words;
    }
  }
  return /[\p{L}\p{N}]/u.test(text) ? text : undefined;
}

/** Returns a message with other words for some of its options; `undefined` keeps one. */
export function withWords(message: Message, wordFor: (term: OptionTerm) => string | undefined): Message {
  if (typeof message === "string") return message;
  return new Wording(
    message.parts.map((part): Part => {
      if (typeof part !== "object") return part;
      if (part instanceof Wording) return withWords(part, wordFor);
      if ("items" in part) return { ...part, items: part.items.map((item) => withWords(item, wordFor)) };
      return "option" in part ? (wordFor(part) ?? part) : part;
    }),
  );
}

function renderSeries({ lead, separator, items }: Series, wordsOf: WordsOf, before: string): string {
  let text = "";
  for (const item of items) {
    const start = text === "" ? lead : text + separator;
    const said = render(item, wordsOf, before + start);
    if (said !== undefined) text = start + said;
  }
  return text;
}

/** Returns what a term is called on the command line. */
export function commandLineWords(term: Term): string {
  if ("option" in term) return term.value === undefined ? nameOf(term) : `${nameOf(term)} ${term.value}`;
  const { command, session, service = [], isLine } = term;
  const chosen = session === undefined ? [] : ["-S", sessionWord(session)];
  const line = ["bough", ...service.map(quote), ...chosen, command, ...wordsAfter(term)].join(" ");
  return isLine ? line : `\`${line}\``;
}

function sessionWord(session: NonNullable<CommandTerm["session"]>): string {
  return typeof session === "string" ? quote(session) : session.placeholder;
}

/** Returns the words after a command's name, quoted for a shell. */
export function wordsAfter({ options = [], words = [] }: CommandTerm): string[] {
  const given = options.flatMap((option) => [
    nameOf(option),
    ...(option.value === undefined ? [] : [option.value]),
  ]);
  return [...given, ...words].map(quote);
}

function nameOf({ option, letter }: OptionTerm): string {
  return letter === undefined ? `--${option}` : `-${letter}`;
}
