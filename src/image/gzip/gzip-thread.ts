/** A thread's own program: compresses the blocks that it is sent. */
import { serveThread } from "../../thread.ts";
import { gzipBlock } from "./gzip-block.ts";

serveThread(gzipBlock, ({ buffer }) => [buffer]);
