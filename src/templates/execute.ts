/** Runs templates of Go over plain data. */
import { createEvaluator } from "./evaluate.ts";
import { formatValue } from "./format-value.ts";
import type { Functions } from "./functions.ts";
import { type BranchNode, type Template, type TemplateNode, textOfPipe } from "./nodes.ts";
import { GoMap, GoNil, type GoValue, isTruthy } from "./values.ts";

/** Go allows 100,000, but JavaScript's stack is smaller. */
const maxDepth = 1000;

/** Writes what a template makes of the data. What was written before a TemplateError stays written, as in Go. */
export function executeTemplate(
  { text, nodes, defined }: Template,
  data: GoValue,
  functions: Functions,
  write: (text: string) => void,
): void {
  const { evaluate, bind, scoped, within, fail, failAtLatest } = createEvaluator(text, functions);
  let depth = 0;

  /** Returns how a list ended: `break` and `continue` end the lists around, too. */
  function run(list: readonly TemplateNode[], dot: GoValue): "break" | "continue" | undefined {
    for (const node of list) {
      const ended = runNode(node, dot);
      if (ended !== undefined) return ended;
    }
    return undefined;
  }

  function runNode(node: TemplateNode, dot: GoValue): "break" | "continue" | undefined {
    switch (node.kind) {
      case "text":
        write(node.text);
        return undefined;
      case "action": {
        const value = evaluate(node.pipe, dot);
        if (node.pipe.variables.length === 0) write(value === null ? "<no value>" : formatValue(value));
        return undefined;
      }
      case "if":
      case "with":
        return scoped(() => {
          const value = evaluate(node.pipe, dot);
          if (!isTruthy(value)) return run(node.otherwise, dot);
          return run(node.body, node.kind === "with" ? value : dot);
        });
      case "range":
        return scoped(() => runRange(node, dot));
      case "template": {
        const found = defined.get(node.name);
        if (found === undefined)
          throw fail(node.at, textOfTemplate(node), `template ${JSON.stringify(node.name)} not defined`);
        if (depth >= maxDepth)
          throw fail(node.at, textOfTemplate(node), `exceeded maximum template depth (${maxDepth})`);
        const value = node.pipe === undefined ? null : evaluate(node.pipe, dot);
        depth += 1;
        within(value, () => run(found, value));
        depth -= 1;
        return undefined;
      }
      case "break":
      case "continue":
        return node.kind;
    }
  }

  function runRange(node: BranchNode, dot: GoValue): "break" | "continue" | undefined {
    const value = evaluate(node.pipe, dot, false);
    const items = itemsOf(value);
    if (items === undefined) throw failAtLatest(`range can't iterate over ${formatValue(value)}`);
    if (typeof value === "bigint" && node.pipe.variables.length > 1)
      throw failAtLatest(`can't use ${value} to iterate over more than one variable`);
    let isEmpty = true;
    for (const [key, item] of items) {
      isEmpty = false;
      const ended = scoped(() => {
        const [first, second] = node.pipe.variables;
        const given =
          second === undefined ? [[first, item] as const] : [[first, key] as const, [second, item] as const];
        for (const [name, each] of given) if (name !== undefined) bind(name, each, node.pipe);
        return run(node.body, item);
      });
      if (ended === "break") break;
    }
    return isEmpty ? run(node.otherwise, dot) : undefined;
  }

  within(data, () => run(nodes, data));
}

/** Returns keys and items; `undefined` for a value that has none. */
function itemsOf(value: GoValue): Iterable<readonly [GoValue, GoValue]> | undefined {
  // As in Go, a nil acts like an empty map.
  if (value === null || (value instanceof GoNil && value.kind !== "pointer")) return [];
  if (Array.isArray(value)) return value.map((item, at) => [BigInt(at), item] as const);
  if (value instanceof GoMap) return value.entries;
  return typeof value === "bigint" ? count(value) : undefined;
}

function* count(end: bigint): Generator<readonly [GoValue, GoValue]> {
  for (let at = 0n; at < end; at += 1n) yield [at, at];
}

function textOfTemplate({ name, pipe }: TemplateNode & { kind: "template" }): string {
  return `{{template ${JSON.stringify(name)}${pipe === undefined ? "" : ` ${textOfPipe(pipe)}`}}}`;
}
