/** The name of a row of a table: its first column. */
type Row = readonly [name: string, ...unknown[]] | { readonly name: string };

/**
 * The rows that are tried as `who`: as root all of them, as an ordinary user those that `ofEachKind` names. An ordinary user's
 * engine is the same program in a user namespace, so that one row of each kind shows what is different there. With
 * `FAST_CHECK_TIMES` above 1 both try all.
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
