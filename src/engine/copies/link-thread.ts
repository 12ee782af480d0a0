/** The program of a link thread: makes the hard links of each batch that it receives. */
import { serveThread } from "../../thread.ts";
import { linkBatch } from "./linker.ts";

serveThread(linkBatch);
