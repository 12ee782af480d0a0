/** The program of a thread: compresses the blocks that it receives. */
import { serveThread } from "../../thread.ts";
import { gzipBlock } from "./gzip-block.ts";

serveThread(gzipBlock, ({ buffer }) => [buffer]);
