/** The name of a row of a table: its first column. */
type Row = readonly [name: string, ...unknown[]] | { readonly name: string };

/**
 * The rows that are tested as `who`: all of them as root, and those in `ofEachKind` as an ordinary user. An ordinary user's
 * engine is the same program in a user namespace, so one row of each kind shows the differences. With `FAST_CHECK_TIMES`
 * above 1, all rows are tested as both.
 */
export function rowsFor<Each extends Row>(
  who: string,
  rows: readonly Each[],
  ofEachKind: readonly string[],
): Each[] {
  const nameOf = (row: Row): string => ("name" in row ? row.name : row[0]);
  const names = rows.map(nameOf);
  const unknown = ofEachKind.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`no row is named ${unknown.join(" or ")}`);
  const all = who === "root" || Number(process.env.FAST_CHECK_TIMES ?? 1) > 1;
  return rows.filter((row) => all || ofEachKind.includes(nameOf(row)));
}
