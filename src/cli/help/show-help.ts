/** `bough help` and `bough help TOPIC`. Loaded only for these, with the text of every topic. */
import { BoughError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import type { CommandTable } from "../command-line/command.ts";
import { renderRows, wrapText } from "../command-line/help.ts";
import type { Output } from "../process/runtime.ts";
import { renderMarkdown } from "./render-markdown.ts";
import { topics } from "./topics.ts";

/** The width of a topic in a pipe or a file, and the greatest on a terminal: longer lines are hard to read. */
const pipeColumns = 80;
const maxColumns = 120;

export function showTopics(output: Output): void {
  const rows = Object.entries(topics).map(([name, { summary }]) => [name, summary] as const);
  output.writeAlone((columns) =>
    [
      wrapText("`bough help TOPIC` shows a topic, `bough help COMMAND` all options of a command.", columns),
      renderRows("Topics", rows, columns),
      "`bough -h` lists the commands.\n",
    ].join("\n"),
  );
}

/** Shows a topic. Throws a BoughError of kind `usage` if there is none of that name. */
export function showTopic(name: string, output: Output, commands: CommandTable): void {
  const topic = Object.hasOwn(topics, name) ? topics[name] : undefined;
  if (topic === undefined) throw unknownTopic(name, commands);
  const { hasColor } = output;
  output.writeAlone((columns) => {
    const width = columns === Number.POSITIVE_INFINITY ? pipeColumns : Math.min(columns, maxColumns);
    const text = renderMarkdown(topic.markdown, { columns: width, hasColor });
    return topic.appendix === undefined ? text : `${text}\n${topic.appendix(width)}\n`;
  });
}

function unknownTopic(name: string, commands: CommandTable): BoughError {
  const guess = nearest(name, [...Object.keys(commands), ...Object.keys(topics)]);
  return new BoughError(`there is neither a command nor a topic ${JSON.stringify(name)}`, {
    kind: "usage",
    hint:
      guess === undefined
        ? "`bough help` lists the topics, `bough -h` the commands."
        : `Did you mean ${guess}?`,
  });
}
