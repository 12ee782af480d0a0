/** The tables of users and groups that an image brings: nobody trusts them to be small or well-formed. */

/** The highest uid and gid; Docker (moby/sys/user) takes 0 to 2147483647. */
const maxId = 2 ** 31 - 1;

/** The number of a user or a group; `undefined` for what is none: a name, a negative one, one out of range. */
export function idOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return undefined;
  const id = Number(text);
  return id <= maxId ? id : undefined;
}

/** Rows of both tables have fewer fields. */
const maxFields = 8;

/**
 * The rows of `/etc/passwd` or `/etc/group`, each split at its colons. One at a time: sixteen megabytes of line ends would
 * be a gigabyte of rows.
 */
export function* accountRows(table: string): Generator<string[]> {
  for (let at = 0; at < table.length; ) {
    const next = table.indexOf("\n", at);
    const end = next < 0 ? table.length : next;
    yield table.slice(at, end).split(":", maxFields);
    at = end + 1;
  }
}
