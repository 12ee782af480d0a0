/** Reads an image's tables of users and groups, which may be huge or malformed. */

/** The highest uid and gid; Docker (moby/sys/user) accepts 0 to 2147483647. */
const maxId = 2 ** 31 - 1;

/** Parses a uid or gid. Returns `undefined` for anything else: a name, a negative number, one out of range. */
export function idOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return undefined;
  const id = Number(text);
  return id <= maxId ? id : undefined;
}

/** The limit of fields in a row: `/etc/passwd` has seven. */
const maxFields = 8;

/**
 * Yields the rows of `/etc/passwd` or `/etc/group`, split at their colons. It yields one at a time, since sixteen megabytes of
 * line ends would be a gigabyte of rows.
 */
export function* accountRows(table: string): Generator<string[]> {
  for (let at = 0; at < table.length; ) {
    const next = table.indexOf("\n", at);
    const end = next < 0 ? table.length : next;
    yield table.slice(at, end).split(":", maxFields);
    at = end + 1;
  }
}
