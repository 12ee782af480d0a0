/** The parts of a parsed template, and their text for messages. */

export type TemplateNode =
  | { kind: "text"; text: string }
  | { kind: "action"; pipe: PipeNode }
  | BranchNode
  | { kind: "template"; name: string; pipe: PipeNode | undefined; at: number }
  | { kind: "break" | "continue" };

export interface BranchNode {
  kind: "if" | "with" | "range";
  pipe: PipeNode;
  body: readonly TemplateNode[];
  otherwise: readonly TemplateNode[];
}

export interface PipeNode {
  /** The variables that are declared, or assigned, without their dollar signs. */
  variables: readonly string[];
  assigns: boolean;
  commands: readonly CommandNode[];
  at: number;
}

export interface CommandNode {
  operands: readonly Operand[];
  at: number;
}

export type Operand = { at: number } & (
  | { kind: "dot" | "nil" }
  | { kind: "boolean"; value: boolean }
  | { kind: "number"; value: bigint | number; text: string }
  | { kind: "string"; value: string; text: string }
  | { kind: "word"; name: string }
  | { kind: "field"; names: readonly string[] }
  | { kind: "variable"; name: string; names: readonly string[] }
  | { kind: "pipe"; pipe: PipeNode }
  | { kind: "chain"; of: Operand; names: readonly string[] }
);

export interface Template {
  text: string;
  nodes: readonly TemplateNode[];
  /** The templates by the names that `define` gives. */
  defined: ReadonlyMap<string, readonly TemplateNode[]>;
}

export function textOfPipe({ variables, assigns, commands }: PipeNode): string {
  const names = variables.map((name) => `$${name}`).join(", ");
  const declares = variables.length === 0 ? "" : `${names} ${assigns ? "=" : ":="} `;
  return declares + commands.map(textOfCommand).join(" | ");
}

export function textOfCommand({ operands }: CommandNode): string {
  return operands
    .map((operand) => (operand.kind === "pipe" ? `(${textOfPipe(operand.pipe)})` : textOfOperand(operand)))
    .join(" ");
}

export function textOfOperand(operand: Operand): string {
  switch (operand.kind) {
    case "dot":
      return ".";
    case "nil":
      return "nil";
    case "boolean":
      return String(operand.value);
    case "number":
    case "string":
      return operand.text;
    case "word":
      return operand.name;
    case "field":
      return fields(operand.names);
    case "variable":
      return `$${operand.name}${fields(operand.names)}`;
    case "pipe":
      return textOfPipe(operand.pipe);
    case "chain":
      return operand.of.kind === "pipe"
        ? `(${textOfPipe(operand.of.pipe)})${fields(operand.names)}`
        : `${textOfOperand(operand.of)}${fields(operand.names)}`;
  }
}

function fields(names: readonly string[]): string {
  return names.map((name) => `.${name}`).join("");
}

/** Returns the names of all fields that a template mentions, so that others need not be read. */
export function mentionedFields({ nodes, defined }: Template): Set<string> {
  const found = new Set<string>();
  const add = (names: readonly string[]) => {
    for (const name of names) found.add(name);
  };
  const visitOperand = (operand: Operand): void => {
    if ("names" in operand) add(operand.names);
    if (operand.kind === "chain") visitOperand(operand.of);
    if (operand.kind === "pipe") visitPipe(operand.pipe);
  };
  const visitPipe = ({ commands }: PipeNode): void => {
    for (const { operands } of commands) for (const operand of operands) visitOperand(operand);
  };
  const visit = (each: readonly TemplateNode[]): void => {
    for (const node of each) {
      if ("pipe" in node && node.pipe !== undefined) visitPipe(node.pipe);
      if ("body" in node) for (const inner of [node.body, node.otherwise]) visit(inner);
    }
  };
  for (const each of [nodes, ...defined.values()]) visit(each);
  return found;
}
