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

/** Returns the target's name of a service: a compose file may have dots in it, a bake file has none. */
export function targetName(service: string): string {
  return service.replaceAll(".", "_");
}
