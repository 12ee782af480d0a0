/** The program of a packing thread: packs the layers that it receives. */
import { serveThread } from "../../thread.ts";
import { createPacking } from "./pack-layer.ts";

serveThread(createPacking().pack);
