/** Started by write-ahead-log.test.ts: opens the database at the path as the store, or the engine, does. */
import { openDatabase as openEngineDatabase } from "../../src/engine/records/database.ts";
import { openDatabase } from "../../src/store/database.ts";

const [whose, path = ""] = process.argv.slice(2);
process.stdout.write("opening\n");
const database = whose === "engine" ? openEngineDatabase(path) : openDatabase(path, []);
const row = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode").get();
process.stdout.write(`${row?.journal_mode}\n`);
