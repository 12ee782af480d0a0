/** The program of a copy thread: copies the small files of each batch that it receives. */
import { serveThread } from "../../thread.ts";
import { createBatchCopier } from "./verified-copy.ts";

serveThread(createBatchCopier());
