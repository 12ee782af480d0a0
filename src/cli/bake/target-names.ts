/** Names and patterns of targets, paths and addresses, as all kinds of bake files have them. */
import { parseGoBoolean } from "../../go/boolean.ts";

/** True if a name matches a pattern with `*`, `?` and `[...]`, as Go's path.Match has them. */
export function matchesName(pattern: string, name: string): boolean {
  if (!isPattern(pattern)) return pattern === name;
  const source = pattern.replace(
    /\*|\?|\[(\^?)([^\]]*)\]|[\s\S]/g,
    (part, negated: string | undefined, set: string | undefined) => {
      if (part === "*") return ".*";
      if (part === "?") return ".";
      if (set !== undefined) return `[${negated ?? ""}${set.replace(/[\\[\]]/g, "\\$&")}]`;
      return RegExp.escape(part);
    },
  );
  try {
    return new RegExp(`^(?:${source})$`, "s").test(name);
  } catch {
    // As in Go, a pattern such as [z-a] matches nothing.
    return false;
  }
}

export function isPattern(text: string): boolean {
  return /[*?[\]]/.test(text);
}

/** Returns the name of a service's target. Names of services may contain dots, names of targets may not. */
export function targetName(service: string): string {
  return service.replaceAll(".", "_");
}

/** The beginning of paths that are those of this machine, wherever the bake file is. */
export const localPrefix = "cwd://";

/** Returns the path behind `cwd://`; `undefined` for a text without this prefix. */
export function localPath(text: string): string | undefined {
  return text.startsWith(localPrefix) ? text.slice(localPrefix.length) : undefined;
}

/** True for a context that is fetched. */
export function isAddress(text: string): boolean {
  return /^[\w+.-]+:\/\/|^git@/.test(text);
}

/** Returns the entry of `attest` that a value of `provenance` or `sbom` stands for. */
export function attestationText(type: string, value: string): string {
  const isOn = parseGoBoolean(value);
  if (isOn === true) return `type=${type}`;
  return `type=${type},${isOn === false ? "disabled=true" : value}`;
}

/** True for a name that a target or a group of a bake file may have. */
export function isTargetName(name: string): boolean {
  return /^[a-zA-Z0-9_-]+$/.test(name);
}

/** The target or group that is built if none is named. */
export const defaultName = "default";
