import type { Explanation, FileDifference, Shown } from "../builder/cache/step-difference.ts";
import { truncate, visible } from "../visible.ts";
import { formatCount } from "./quantity.ts";

/** Renders why a step is not cached, as the rest of a line. */
export function renderExplanation(explanation: Explanation): string {
  switch (explanation.reason) {
    case "first build":
      return "first build of this context with this Dockerfile";
    case "--no-cache":
      return "--no-cache is given";
    case "--no-cache-filter":
      return "--no-cache-filter names its stage, or a stage that it uses";
    case "new instruction":
      return "no earlier build has finished such an instruction here";
    case "layer gone":
      return "nothing has changed since the last build, but its layer is gone";
    case "instruction":
      return `the instruction's text has changed; it was ${truncate(explanation.before, maxTextLength)}`;
    case "ARG":
    case "ENV": {
      const { reason, name, before, now } = explanation;
      return `${reason} ${visible(name)} ${variableChange(before, now)}`;
    }
    case "USER":
    case "WORKDIR": {
      const { reason, before, now } = explanation;
      return `${reason} has changed: ${visible(before ?? "none")} -> ${visible(now ?? "none")}`;
    }
    case "file":
      return fileChange(explanation);
    case "source": {
      const { from, path } = explanation;
      const what =
        path === undefined ? `--from=${visible(from)}` : `${visible(path)} in --from=${visible(from)}`;
      return `${what} has changed`;
    }
    case "mount": {
      const { from, path } = explanation;
      return `--from=${visible(from)} has changed, of which it mounts ${visible(path)}`;
    }
    case "option":
      return `${explanation.name} has changed`;
    case "command":
      return "the values of its variables have changed, or options such as --network and --add-host";
    case "parent": {
      const { before, now, title } = explanation;
      const what = isImage(before) && isImage(now) ? "base image" : "parent layer";
      const change = `${layerName(before)} -> ${layerName(now)}`;
      return `the ${what} has changed: ${title === undefined ? change : `${title} (${change})`}`;
    }
  }
}

/** Renders how a step in a scope differs. */
export function renderShared({ scope, explanation }: { scope: string; explanation: Explanation }): string {
  if (explanation.reason !== "file") return `in ${scope}, ${renderExplanation(explanation)}`;
  const { path, source = path, before, now } = explanation;
  const file = visible(source);
  if (before === undefined) return `in ${scope} this step had no ${file}`;
  if (now === undefined) return `in ${scope} this step had ${file}, too`;
  const [[was = "", wasHash], [is = "", isHash]] = [splitHash(before), splitHash(now)];
  const change =
    wasHash === isHash ? `${visible(was)}, here ${visible(is)}` : `sha256 ${wasHash}, here ${isHash}`;
  return `in ${scope} this step had a different ${file}: ${change}`;
}

const maxTextLength = 100;

function variableChange(before: Shown, now: Shown): string {
  const isSecret = [before, now].some((shown) => shown && "isWithheld" in shown);
  if (isSecret) {
    const verb = before === undefined ? "is new" : now === undefined ? "is gone" : "has changed";
    return `${verb} (not shown, as it looks like a secret)`;
  }
  if (before === undefined) return `is new: ${quoted(now)}`;
  if (now === undefined) return `is gone; it was ${quoted(before)}`;
  return `has changed: ${quoted(before)} -> ${quoted(now)}`;
}

function quoted(shown: Shown): string {
  return shown && "text" in shown ? `"${visible(truncate(shown.text, maxTextLength))}"` : "no value";
}

/** Renders `src/a.js (/app/a.js in the image) has changed: sha256 9b1cf4 -> 3f2a9c; 3 more files differ`. */
function fileChange({ path, source, before, now, others }: FileDifference): string {
  const file = source === undefined ? visible(path) : `${visible(source)} (${visible(path)} in the image)`;
  const more =
    others === 0 ? "" : `; ${formatCount(others, "more file")} ${others === 1 ? "differs" : "differ"}`;
  if (before === undefined) return `${file} is new: ${describe(now)}${more}`;
  if (now === undefined) return `${file} is gone; it was ${describe(before)}${more}`;
  const [was = "", wasHash] = splitHash(before);
  const [is = "", isHash] = splitHash(now);
  const changes = [
    ...(wasHash === isHash ? [] : [`sha256 ${wasHash ?? "none"} -> ${isHash ?? "none"}`]),
    ...(was === is ? [] : [`${visible(was)} -> ${visible(is)}`]),
  ];
  return `${file} has changed: ${changes.join(", ")}${more}`;
}

function describe(file: string | undefined): string {
  const [what = "", hash] = splitHash(file ?? "");
  return hash === undefined ? visible(what) : `${what}, sha256 ${hash}`;
}

/** Splits the hash off a file's description. Descriptions of directories and links have none. */
function splitHash(description: string): [what: string, hash: string | undefined] {
  const [, what, hash] = /^(file .*) (\w+)$/.exec(description) ?? [];
  return what === undefined ? [description, undefined] : [what, hash];
}

function isImage(hash: string): boolean {
  return hash.includes("-");
}

function layerName(hash: string): string {
  return isImage(hash) ? hash : `layer:${hash.slice(0, 12)}`;
}
