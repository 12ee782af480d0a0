/** Parses templates of Go: https://pkg.go.dev/text/template */
import { lexAction, type TemplateToken } from "./lex.ts";
import type { PipeNode, Template, TemplateNode } from "./nodes.ts";
import { parsePipe, type TokenReader, unexpected } from "./parse-pipe.ts";
import { TemplateError } from "./template-error.ts";
import { unquote } from "./unquote.ts";

/** Parses a template that may call the given functions. Throws a TemplateError. */
export function parseTemplate(text: string, functions: ReadonlySet<string>): Template {
  const fail = (at: number, message: string) =>
    new TemplateError(`template: :${text.slice(0, at).split("\n").length}: ${message}`);
  const items = splitText(text, fail);
  const defined = new Map<string, readonly TemplateNode[]>();
  let next = 0;
  const scope = createScope();
  const readerOf = ({ tokens }: Action) =>
    createReader(tokens, { fail, functions, knows: (name) => scope.knows(name) });

  /** Parses up to `end` or `else`. */
  function parseList(): { nodes: TemplateNode[]; end: Action | undefined } {
    const nodes: TemplateNode[] = [];
    for (; ; next += 1) {
      const item = items[next];
      if (item === undefined) return { nodes, end: undefined };
      if (item.kind === "text") {
        if (item.text !== "") nodes.push(item);
        continue;
      }
      const word = item.tokens.find(({ kind }) => kind !== "space");
      if (word?.kind === "word" && (word.text === "end" || word.text === "else")) return { nodes, end: item };
      const node = parseAction(item, word);
      if (node !== undefined) nodes.push(node);
    }
  }

  function parseAction(item: Action, word: TemplateToken | undefined): TemplateNode | undefined {
    const reader = readerOf(item);
    switch (word?.kind === "word" ? word.text : "") {
      case "if":
      case "with":
      case "range":
        return parseBlock(word?.text as "if", skip(reader));
      case "define": {
        const name = readName(skip(reader), "define clause");
        defined.set(name, parseBody(requireEnd(reader, "define clause").at));
        return undefined;
      }
      case "block": {
        const called = readTemplate(skip(reader), "block clause", true);
        defined.set(called.name, parseBody(item.at));
        return called;
      }
      case "template":
        return readTemplate(skip(reader), "template clause");
      case "break":
      case "continue": {
        requireEnd(skip(reader), `{{${word?.text}}}`);
        if (scope.loops === 0) throw fail(item.at, `{{${word?.text}}} outside {{range}}`);
        return { kind: word?.text as "break" };
      }
      default: {
        const pipe = parsePipe(reader, "command");
        scope.declare(pipe);
        return { kind: "action", pipe };
      }
    }
  }

  function parseBlock(kind: "if" | "with" | "range", reader: TokenReader): TemplateNode {
    const loops = scope.loops + (kind === "range" ? 1 : 0);
    return scope.within({}, () => {
      const pipe = parsePipe(reader, kind);
      scope.declare(pipe);
      next += 1;
      const { nodes: body, end } = scope.within({ loops }, parseList);
      const otherwise = end === undefined ? undefined : parseElse(kind, end);
      if (otherwise === undefined) throw fail(text.length, "unexpected EOF");
      return { kind, pipe, body, otherwise };
    });
  }

  /** Parses what follows `else`; nothing at `end`. */
  function parseElse(kind: "if" | "with" | "range", end: Action): readonly TemplateNode[] | undefined {
    const reader = skip(readerOf(end));
    if (isWord(end, "end")) return [];
    const word = reader.peek();
    if (word.kind === "word" && word.text === kind && kind !== "range") {
      // `{{else if}}` ends with the same `{{end}}`.
      reader.next();
      return [parseBlock(kind, reader)];
    }
    requireEnd(reader, "{{else}}");
    next += 1;
    return parseBody(end.at, false);
  }

  /** Parses up to `end`. */
  function parseBody(at: number, isNext = true): TemplateNode[] {
    if (isNext) next += 1;
    const { nodes, end } = scope.within(isNext ? { variables: [""], loops: 0 } : {}, parseList);
    if (end === undefined) throw fail(text.length, "unexpected EOF");
    if (!isWord(end, "end")) throw fail(at, "expected end; found {{else}}");
    return nodes;
  }

  const { nodes, end } = parseList();
  if (end !== undefined) throw fail(end.at, `unexpected {{${isWord(end, "end") ? "end" : "else"}}}`);
  return { text, nodes, defined };
}

/** Creates the scope of the parser: the declared variables, and the number of loops around. */
function createScope() {
  let known: { variables: readonly string[]; loops: number } = { variables: [""], loops: 0 };
  return {
    get loops() {
      return known.loops;
    },
    knows: (variable: string) => known.variables.includes(variable),
    declare({ variables, assigns }: PipeNode): void {
      if (!assigns) known = { ...known, variables: [...known.variables, ...variables] };
    },
    within<Result>(change: Partial<typeof known>, work: () => Result): Result {
      const before = known;
      known = { ...known, ...change };
      const result = work();
      known = before;
      return result;
    },
  };
}

/** Reads a template's name and its argument. */
function readTemplate(
  reader: TokenReader,
  context: string,
  needsPipe = false,
): Extract<TemplateNode, { kind: "template" }> {
  const { at } = reader.peek();
  const name = readName(reader, context);
  const pipe = needsPipe || reader.peek().kind !== "end" ? parsePipe(reader, context) : undefined;
  return { kind: "template", name, pipe, at };
}

function requireEnd(reader: TokenReader, context: string): TemplateToken {
  const token = reader.peek();
  if (token.kind !== "end") throw unexpected(token, context, reader.fail);
  return token;
}

function readName(reader: TokenReader, context: string): string {
  const token = reader.next();
  const name = token.kind === "string" ? unquote(token.text) : undefined;
  if (name === undefined) throw unexpected(token, context, reader.fail);
  return name;
}

/** Reads the tokens of an action. */
function createReader(
  tokens: readonly TemplateToken[],
  known: Pick<TokenReader, "fail" | "functions" | "knows">,
): TokenReader {
  let at = 0;
  const peek = () => {
    while (tokens[at]?.kind === "space") at += 1;
    return tokens[at] ?? endOf(tokens);
  };
  return {
    ...known,
    peek,
    next() {
      const token = peek();
      at += 1;
      return token;
    },
    peekDirectly: () => tokens[at] ?? endOf(tokens),
    peekSecond: () => tokens.slice(at + 1).find(({ kind }) => kind !== "space") ?? endOf(tokens),
  };
}

type Item = { kind: "text"; text: string } | Action;

interface Action {
  kind: "action";
  tokens: readonly TemplateToken[];
  at: number;
}

function isWord({ tokens }: Action, text: string): boolean {
  return tokens.find(({ kind }) => kind !== "space")?.text === text;
}

function skip(reader: TokenReader): TokenReader {
  reader.next();
  return reader;
}

function endOf(tokens: readonly TemplateToken[]): TemplateToken {
  return tokens.at(-1) ?? { kind: "end", text: "}}", at: 0 };
}

/** Splits a template into texts and actions, without comments, and with `{{-` and `-}}` applied. */
function splitText(text: string, fail: (at: number, message: string) => TemplateError): Item[] {
  const items: Item[] = [];
  let trimsLeft = false;
  for (let at = 0; ; ) {
    const start = text.indexOf("{{", at);
    const raw = text.slice(at, start < 0 ? undefined : start);
    const trimmed = trimsLeft ? raw.replace(/^[ \t\r\n]+/, "") : raw;
    const trims = start >= 0 && /^\{\{-[ \t\r\n]/.test(text.slice(start, start + 4));
    items.push({ kind: "text", text: trims ? trimmed.replace(/[ \t\r\n]+$/, "") : trimmed });
    if (start < 0) return items;
    const inside = start + (trims ? 4 : 2);
    if (text.startsWith("/*", inside)) {
      const close = text.indexOf("*/", inside);
      if (close < 0) throw fail(start, "unclosed comment");
      const [, dash, end] = /^([ \t\r\n]-)?(\}\})/.exec(text.slice(close + 2, close + 6)) ?? [];
      if (end === undefined) throw fail(close, "comment ends before closing delimiter");
      trimsLeft = dash !== undefined;
      at = close + 2 + (dash?.length ?? 0) + 2;
      continue;
    }
    const { tokens, end, trimsRight } = lexAction(text, inside, fail);
    items.push({ kind: "action", tokens, at: start });
    trimsLeft = trimsRight;
    at = end;
  }
}
