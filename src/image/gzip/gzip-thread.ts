/** The program of a thread: compresses the blocks that it receives. */
import { serveThread } from "../../thread.ts";
import { compressBlock } from "./gzip-block.ts";

serveThread(compressBlock, ({ buffer }) => [buffer]);
