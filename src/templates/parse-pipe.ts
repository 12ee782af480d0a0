/** Parses pipelines of templates: `$x := .Name | printf "%q" | len`. */
import type { TemplateToken } from "./lex.ts";
import { type CommandNode, type Operand, type PipeNode, textOfOperand } from "./nodes.ts";
import type { TemplateError } from "./template-error.ts";
import { unquote } from "./unquote.ts";

export interface TokenReader {
  /** The next token that is no space. */
  peek(): TemplateToken;
  next(): TemplateToken;
  /** The next token, also a space. */
  peekDirectly(): TemplateToken;
  /** The one behind the next, without spaces. */
  peekSecond(): TemplateToken;
  fail(at: number, message: string): TemplateError;
  functions: ReadonlySet<string>;
  knows(variable: string): boolean;
}

/** Parses a pipeline up to the end of the action. */
export function parsePipe(reader: TokenReader, context: string): PipeNode {
  return parsePipeUntil(reader, context, "end");
}

function parsePipeUntil(reader: TokenReader, context: string, end: "end" | ")"): PipeNode {
  const { at } = reader.peek();
  const { variables, assigns } = parseDeclaration(reader, context);
  const commands: CommandNode[] = [];
  for (;;) {
    const token = reader.peek();
    if (token.kind === end) {
      reader.next();
      if (commands.length === 0) throw reader.fail(token.at, `missing value for ${context}`);
      const later = commands
        .slice(1)
        .findIndex(({ operands: [first] }) => first !== undefined && isConstant(first));
      if (later >= 0) throw reader.fail(token.at, `non executable command in pipeline stage ${later + 2}`);
      return { variables, assigns, commands, at };
    }
    if (["|", "=", ":=", ",", ")", "other", "end"].includes(token.kind) || isKeyword(token))
      throw unexpected(token, context, reader.fail);
    commands.push(parseCommand(reader, end));
  }
}

function isConstant({ kind }: Operand): boolean {
  return kind === "boolean" || kind === "dot" || kind === "nil" || kind === "number" || kind === "string";
}

function parseDeclaration(reader: TokenReader, context: string): Pick<PipeNode, "variables" | "assigns"> {
  const variables: string[] = [];
  while (reader.peek().kind === "variable") {
    const after = reader.peekSecond();
    const isDeclared = after.kind === ":=" || after.kind === "=";
    const isFirstOfRange = after.kind === "," && context === "range" && variables.length === 0;
    if (!isDeclared && !isFirstOfRange) {
      if (after.kind === ",") throw reader.fail(after.at, `too many declarations in ${context}`);
      break;
    }
    const { text } = reader.next();
    reader.next();
    variables.push(text.slice(1));
    if (!isDeclared) {
      if (reader.peek().kind !== "variable")
        throw reader.fail(reader.peek().at, "range can only initialize variables");
      if (reader.peekSecond().kind === ",")
        throw reader.fail(reader.peek().at, `too many declarations in ${context}`);
      continue;
    }
    return { variables, assigns: after.kind === "=" };
  }
  return { variables, assigns: false };
}

function parseCommand(reader: TokenReader, end: "end" | ")"): CommandNode {
  const { at } = reader.peek();
  const operands: Operand[] = [];
  for (;;) {
    const operand = parseOperand(reader);
    if (operand !== undefined) operands.push(operand);
    const next = reader.peekDirectly();
    if (next.kind === "space") {
      const following = reader.peek();
      if (following.kind !== end && following.kind !== "|") continue;
    }
    const token = reader.peek();
    if (token.kind === end) break;
    if (token.kind === "|") {
      reader.next();
      break;
    }
    throw unexpected(token, "operand", reader.fail);
  }
  if (operands.length === 0) throw reader.fail(at, "empty command");
  return { operands, at };
}

function parseOperand(reader: TokenReader): Operand | undefined {
  const operand = parseTerm(reader);
  if (operand === undefined || reader.peekDirectly().kind !== "field") return operand;
  const { at } = reader.peekDirectly();
  const names: string[] = [];
  while (reader.peekDirectly().kind === "field") names.push(reader.next().text.slice(1));
  if (operand.kind === "field" || operand.kind === "variable")
    return { ...operand, names: [...operand.names, ...names], at };
  if (
    operand.kind === "boolean" ||
    operand.kind === "string" ||
    operand.kind === "number" ||
    operand.kind === "nil" ||
    operand.kind === "dot"
  )
    throw reader.fail(at, `unexpected . after term ${JSON.stringify(textOfOperand(operand))}`);
  return { kind: "chain", of: operand, names, at };
}

function parseTerm(reader: TokenReader): Operand | undefined {
  const token = reader.peek();
  const { at, text } = token;
  const taken = <Kind extends Operand>(operand: Kind): Kind => {
    reader.next();
    return operand;
  };
  switch (token.kind) {
    case "dot":
      return taken({ kind: "dot", at });
    case "field":
      return taken({ kind: "field", names: [text.slice(1)], at });
    case "variable":
      if (!reader.knows(text.slice(1))) throw reader.fail(at, `undefined variable ${JSON.stringify(text)}`);
      return taken({ kind: "variable", name: text.slice(1), names: [], at });
    case "word":
      if (text === "nil") return taken({ kind: "nil", at });
      if (text === "true" || text === "false") return taken({ kind: "boolean", value: text === "true", at });
      if (keywords.includes(text)) return undefined;
      if (!reader.functions.has(text)) throw reader.fail(at, `function ${JSON.stringify(text)} not defined`);
      return taken({ kind: "word", name: text, at });
    case "number":
      return taken({ kind: "number", value: readNumber(token, reader), text, at });
    case "character": {
      const character = unquote(text);
      if (character === undefined || [...character].length !== 1)
        throw reader.fail(at, `malformed character constant: ${text}`);
      return taken({ kind: "number", value: BigInt(character.codePointAt(0) ?? 0), text, at });
    }
    case "string": {
      const value = unquote(text);
      if (value === undefined) throw reader.fail(at, "invalid syntax");
      return taken({ kind: "string", value, text, at });
    }
    case "(": {
      reader.next();
      return { kind: "pipe", pipe: parsePipeUntil(reader, "parenthesized pipeline", ")"), at };
    }
    default:
      return undefined;
  }
}

function readNumber({ text, at }: TemplateToken, reader: TokenReader): bigint | number {
  const plain = text.replaceAll("_", "").replace(/^\+/, "");
  const digits = plain.replace(/^-/, "");
  const sign = plain.startsWith("-") ? -1n : 1n;
  if (/^(0[xX][\da-fA-F]+|0[bB][01]+|0[oO][0-7]+|[1-9]\d*|0)$/.test(digits)) return sign * BigInt(digits);
  if (/^0[0-7]+$/.test(digits)) return sign * BigInt(`0o${digits.slice(1)}`);
  const value = Number(plain);
  if (!Number.isFinite(value)) throw reader.fail(at, `bad number syntax: ${JSON.stringify(text)}`);
  return value;
}

const keywords = ["if", "with", "range", "define", "block", "template", "else", "end", "break", "continue"];

/** Go's words for a token that must not be there. */
export function unexpected(token: TemplateToken, context: string, fail: TokenReader["fail"]): TemplateError {
  const shown = JSON.stringify(token.text);
  const short = token.text.length > 10 ? `${JSON.stringify(token.text.slice(0, 10))}...` : shown;
  return fail(token.at, `unexpected ${isKeyword(token) ? `<${token.text}>` : short} in ${context}`);
}

function isKeyword({ kind, text }: TemplateToken): boolean {
  return kind === "word" && keywords.includes(text);
}
