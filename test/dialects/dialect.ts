import type { Fault } from "../fake-service/faults.ts";

/** What a service does otherwise than the plainest one. */
export interface Dialect {
  /** `id` where others say `uuid`. */
  idKey?: "uuid" | "id";
  /** Where the operation of a request is told. */
  namesOperation?: "location alone" | "body alone";
  /** What stands in `Location`. */
  location?: (operation: string) => string;
  /** Where operations are, if not below `/v1/operations/`. */
  operationPath?: string;
  /** Answers that need no body have none. */
  emptyBodies?: boolean;
  importAnswers?: "operation" | "image";
  endedStatus?: string;
  runningStatus?: string;
  /** How often an operation is said to run before it has ended. */
  looksUntilEnd?: number;
  exitCode?: number | string;
  /** Output as text instead of an encoded value. */
  plainOutput?: boolean;
  resultIn?: "result" | "result_image_uuid" | "image object";
  /** Image lists: no more at once. */
  maxLimit?: number;
  knowsQueries?: "tag alone";
  ignoresFilters?: boolean;
  bareLists?: boolean;
  /** Refuses bodies of unknown length. */
  requiresLength?: boolean;
  /** Files are answered by their id, without the hash. */
  idsAlone?: boolean;
  hasOperationList?: boolean;
  unknownRoutes?: { status?: number; body?: string };
  /** What a request meets on its way there and back; `count` is 0 for the first of its kind. */
  faults?: (call: string, count: number) => Fault | undefined;
  /** Nobody can tell whether a command was received: it is sent again, and may run twice. */
  mayRunTwice?: boolean;
}
