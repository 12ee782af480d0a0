import type { Clock } from "../../src/clock.ts";
import type { RecordedRequest } from "./recording.ts";
import type { FakeState, RunScript } from "./state.ts";

export interface FakeServiceOptions {
  /** The outcome of each RUN. By default each exits 0 and makes a new image. */
  run?: RunScript;
  /** The service's clock. Without one each new id takes a second. */
  clock?: Pick<Clock, "now">;
  /** False: there is no events route. Default true. */
  events?: boolean;
  /** Has only the six calls that a build needs, and `GET /v1/operations/{uuid}`. */
  sixCallsOnly?: boolean;
  /** Compresses every response if the client accepts it. */
  gzip?: boolean;
  /** A path before `/v1`, such as `/sandboxes`. */
  prefix?: string;
  /** The token; requests with another one get 401. */
  token?: string;
  /** False: `POST /v1/files` responds with the id only. Default true. */
  reportsHashes?: boolean;
  /** The response to a request with a missing image or file. Default 404. */
  missing?: number | "failed operation";
  /** False: operations don't report their `truncate_output_at`. Default true. */
  reportsLimits?: boolean;
  /** The response to an import: an operation, the image, or only the image's id. Default `operation`. */
  importAnswers?: "operation" | "image" | "image id";
  /** True: `DELETE .../tag` ignores `?tag=`, and removes all of an image's tags. */
  removesAllTags?: boolean;
  /** Returns the error of an import of this address. */
  importError?: (url: string) => string | undefined;
  /** The `extensions` of `GET /v1/whoami`. By default the field is missing. */
  extensions?: readonly string[];
  /** Called first. Its result, if there is one, is the response. */
  intercept?: Intercept;
}

export type Intercept = (
  request: Request,
  recorded: RecordedRequest,
) => Response | undefined | Promise<Response | undefined>;

/** The argument of a route: the memory, the options, and the request with the variable parts of its path. */
export interface RouteCall {
  state: FakeState;
  options: FakeServiceOptions;
  request: Request;
  recorded: RecordedRequest;
  parameter: string;
  /** The second variable part; empty if there is none. */
  further: string;
}
