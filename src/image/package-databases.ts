/** What Debian's and Alpine's package managers note of what they have installed. Pure. */

export interface InstalledPackage {
  manager: "deb" | "apk";
  name: string;
  version: string;
  architecture: string | undefined;
}

/**
 * dpkg's `status`, or a file of `status.d`, where images without a package manager have them.
 * https://man7.org/linux/man-pages/man5/deb822.5.html
 */
export function parseDpkgStatus(text: string): InstalledPackage[] {
  return paragraphsOf(text).flatMap((lines) => {
    const fields = fieldsOf(lines, /^([A-Za-z][\w-]*):[ \t]*(.*)$/);
    // A package that was removed has left its configuration behind.
    const isInstalled = fields.get("status")?.endsWith(" installed") !== false;
    return isInstalled
      ? packageOf("deb", fields, { name: "package", version: "version", architecture: "architecture" })
      : [];
  });
}

/** `/lib/apk/db/installed`. https://wiki.alpinelinux.org/wiki/Apk_spec */
export function parseApkInstalled(text: string): InstalledPackage[] {
  return paragraphsOf(text).flatMap((lines) => {
    const fields = fieldsOf(lines, /^([A-Za-z]):(.*)$/, (name) => name);
    return packageOf("apk", fields, { name: "P", version: "V", architecture: "A" });
  });
}

function packageOf(
  manager: InstalledPackage["manager"],
  fields: ReadonlyMap<string, string>,
  names: { name: string; version: string; architecture: string },
): InstalledPackage[] {
  const [name, version] = [fields.get(names.name), fields.get(names.version)];
  if (name === undefined || version === undefined) return [];
  return [{ manager, name, version, architecture: fields.get(names.architecture) }];
}

function paragraphsOf(text: string): string[][] {
  return text.split(/\n[ \t]*\n/).map((paragraph) => paragraph.split("\n"));
}

/** The first of equal names: what follows in apk's paragraphs is of files. */
function fieldsOf(
  lines: readonly string[],
  pattern: RegExp,
  nameOf: (name: string) => string = (name) => name.toLowerCase(),
): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = pattern.exec(line) ?? [];
    if (name !== undefined && value !== undefined && !fields.has(nameOf(name)))
      fields.set(nameOf(name), value.trim());
  }
  return fields;
}
