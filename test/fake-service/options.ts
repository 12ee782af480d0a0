import type { RecordedRequest } from "./recording.ts";
import type { FakeState, RunScript } from "./state.ts";

export interface FakeServiceOptions {
  /** What each RUN does; without it, everything exits 0 and makes a new image. */
  run?: RunScript;
  /** False: there is no events route. Default true. */
  events?: boolean;
  /** Only the six calls that a build cannot do without, and `GET /v1/operations/{uuid}`. */
  sixCallsOnly?: boolean;
  /** Compress every answer for those who accept it. */
  gzip?: boolean;
  /** A path before `/v1`, such as `/sandboxes`. */
  prefix?: string;
  /** Answer 401 to any other. */
  token?: string;
  /** False: `POST /v1/files` answers the id alone. Default true. */
  reportsHashes?: boolean;
  /** How it is said that an image or a file of a request is not there. Default 404. */
  missing?: number | "failed operation";
  /** False: operations don't tell their `truncate_output_at`. Default true. */
  tellsLimits?: boolean;
  /** How an import is answered: by an operation, by the image itself, or by its id alone. Default `operation`. */
  importAnswers?: "operation" | "image" | "image id";
  /** True: `DELETE .../tag` knows no `?tag=`, and removes all of an image's. */
  removesAllTags?: boolean;
  /** Why an import of this address fails. */
  importError?: (url: string) => string | undefined;
  /** What `GET /v1/whoami` says that it can do beyond the API. Default: nothing is said. */
  extensions?: readonly string[];
  /** Looked at first: what it answers is the response. */
  intercept?: Intercept;
}

export type Intercept = (
  request: Request,
  recorded: RecordedRequest,
) => Response | undefined | Promise<Response | undefined>;

/** What a route gets: the memory, the switches, and the request with the variable parts of its path. */
export interface RouteCall {
  state: FakeState;
  options: FakeServiceOptions;
  request: Request;
  recorded: RecordedRequest;
  parameter: string;
  /** The second one; empty where there is none. */
  further: string;
}
