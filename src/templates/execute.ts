/** Runs templates of Go over plain data. */
import { createEvaluator } from "./evaluate.ts";
import type { Functions } from "./functions.ts";
import { type Block, type Node, type Template, textOfPipe } from "./nodes.ts";
import { printed } from "./printed.ts";
import { GoMap, GoNil, isTrue, type Value } from "./values.ts";

/** Go has 100,000, and another stack. */
const maxDepth = 1000;

/** Writes what a template makes of the data. What was written before a TemplateError stays written, as in Go. */
export function executeTemplate(
  { text, nodes, defined }: Template,
  data: Value,
  functions: Functions,
  write: (text: string) => void,
): void {
  const { evaluate, bind, scoped, within, fail, failAtLatest } = createEvaluator(text, functions);
  let depth = 0;

  /** Returns how a list ended: `break` and `continue` end the lists around, too. */
  function run(list: readonly Node[], dot: Value): "break" | "continue" | undefined {
    for (const node of list) {
      const ended = runNode(node, dot);
      if (ended !== undefined) return ended;
    }
    return undefined;
  }

  function runNode(node: Node, dot: Value): "break" | "continue" | undefined {
    switch (node.kind) {
      case "text":
        write(node.text);
        return undefined;
      case "action": {
        const value = evaluate(node.pipe, dot);
        if (node.pipe.variables.length === 0) write(value === null ? "<no value>" : printed(value));
        return undefined;
      }
      case "if":
      case "with":
        return scoped(() => {
          const value = evaluate(node.pipe, dot);
          if (!isTrue(value)) return run(node.otherwise, dot);
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

  function runRange(node: Block, dot: Value): "break" | "continue" | undefined {
    const value = evaluate(node.pipe, dot, false);
    const items = itemsOf(value);
    if (items === undefined) throw failAtLatest(`range can't iterate over ${printed(value)}`);
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
function itemsOf(value: Value): Iterable<readonly [Value, Value]> | undefined {
  // As in Go, a nil acts like an empty map.
  if (value === null || (value instanceof GoNil && value.kind !== "pointer")) return [];
  if (Array.isArray(value)) return value.map((item, at) => [BigInt(at), item] as const);
  if (value instanceof GoMap) return value.entries;
  return typeof value === "bigint" ? count(value) : undefined;
}

function* count(end: bigint): Generator<readonly [Value, Value]> {
  for (let at = 0n; at < end; at += 1n) yield [at, at];
}

function textOfTemplate({ name, pipe }: Node & { kind: "template" }): string {
  return `{{template ${JSON.stringify(name)}${pipe === undefined ? "" : ` ${textOfPipe(pipe)}`}}}`;
}
