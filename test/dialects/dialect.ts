import type { Fault } from "../fake-service/faults.ts";

/** The differences of a service from the plainest one. */
export interface Dialect {
  /** The key of ids in responses. */
  idKey?: "uuid" | "id";
  /** The part of a response that names the operation; both by default. */
  namesOperation?: "location alone" | "body alone";
  /** The value of `Location`. */
  location?: (operation: string) => string;
  /** The path of operations, if it is not `/v1/operations/`. */
  operationPath?: string;
  /** Responses have no body unless they need one. */
  emptyBodies?: boolean;
  importAnswers?: "operation" | "image";
  endedStatus?: string;
  runningStatus?: string;
  /** The number of polls for which an operation is still running. */
  looksUntilEnd?: number;
  exitCode?: number | string;
  /** Output as text instead of an encoded value. */
  plainOutput?: boolean;
  resultIn?: "result" | "result_image_uuid" | "image object";
  /** The maximum `limit` of a list of images. */
  maxLimit?: number;
  knowsQueries?: "tag alone";
  ignoresFilters?: boolean;
  bareLists?: boolean;
  /** Refuses bodies of unknown length. */
  requiresLength?: boolean;
  /** The response to an upload has the file's id, but no hash. */
  idsAlone?: boolean;
  hasOperationList?: boolean;
  unknownRoutes?: { status?: number; body?: string };
  /** The fault that a request meets; `count` is 0 for the first request of a call. */
  faults?: (call: string, count: number) => Fault | undefined;
  /** bough cannot know whether a command was received: it sends it again, and the command may run twice. */
  mayRunTwice?: boolean;
}
