/** Started by write-ahead-log.test.ts: opens the database at the path as the store, or the engine, does. */
import { openDatabase } from "../../src/database.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { openStateFile } from "../../src/store/database.ts";

const [whose, path = ""] = process.argv.slice(2);
process.stdout.write("opening\n");
const database = whose === "engine" ? openDatabase(path, migrations) : openStateFile(path, []);
const row = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode").get();
process.stdout.write(`${row?.journal_mode}\n`);
