import { asRecord, asText } from "../../src/service/http/json.ts";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import { readJson } from "./recording.ts";
import { findUnknownField } from "./request-fields.ts";
import { endOperation, perform } from "./run.ts";

/** Checks the request as a service would, and starts the script's outcome. */
export async function startInstance({ state, options, request, recorded }: RouteCall): Promise<Response> {
  const body = asRecord(await readJson(request, recorded));
  const fault = body === undefined ? "the body is not a JSON object" : faultOf(body, options);
  if (fault !== undefined) return answerWith.error(400, fault);
  const instance = body as unknown as InstanceBody;
  const missing = (error: string) => {
    if (options.missing !== "failed operation") return answerWith.error(options.missing ?? 404, error);
    const operation = state.addOperation("instance", {});
    endOperation(operation, { status: "FAILED", error });
    return Response.json({ uuid: operation.record.uuid }, { status: 201 });
  };
  const image = state.findImage(instance.image);
  if (image === undefined) return missing(`image ${instance.image} not found`);
  const source = instance.copies?.find((copy) => state.findImage(copy.image) === undefined);
  if (source !== undefined) return missing(`image ${source.image} not found`);
  const ids = new Set([...state.files.values()].map(({ uuid }) => uuid));
  const lost = Object.values(instance.files ?? {}).find(({ uuid }) => !ids.has(uuid));
  if (lost !== undefined) return missing(`file ${lost.uuid} does not exist`);

  const outcome = state.run(instance, state.instances.length) ?? {};
  state.instances.push(instance);
  const operation = state.addOperation("instance", {
    metadata: {
      ...requestFields(instance),
      ...(options.reportsLimits === false ? { truncate_output_at: undefined } : {}),
    },
    image_uuid: image.uuid,
  });
  operation.request = instance;
  perform(state, operation, instance, image.uuid, outcome);
  const headers = { location: `/v1/operations/${operation.record.uuid}` };
  const answer = { ...requestFields(instance), uuid: operation.record.uuid, status: "PENDING" };
  return Response.json(answer, { status: 201, headers });
}

/** Returns the fields of a request that its record has. */
function requestFields({ stdin: _, ...request }: InstanceBody): Record<string, unknown> {
  return { ...request, shell: request.shell ?? false, args: request.args ?? [] };
}

function faultOf(body: Record<string, unknown>, { extensions }: RouteCall["options"]): string | undefined {
  if (asText(body.image) === undefined) return "image is required";
  // A request that only places files by an extension needs no command.
  const isOptional = extensions?.some((name) => name === "copies" || name === "entries") === true;
  if (asText(body.command) === undefined && !(isOptional && body.command === ""))
    return "command is required";
  if (asText(body.cwd)?.startsWith("/") === false) return "cwd must be absolute";
  for (const [path, file] of Object.entries(asRecord(body.files) ?? {})) {
    if (!path.startsWith("/")) return `file path ${path} must be absolute`;
    const mode = asRecord(file)?.mode ?? "0644";
    if (typeof mode !== "number" && !/^[0-7]{3,4}$/.test(asText(mode) ?? ""))
      return `invalid mode of ${path}`;
  }
  // Extensions add fields that the API's document does not have.
  const unknown = extensions === undefined ? findUnknownField(body, "InstanceSpawnRequest") : undefined;
  return unknown === undefined ? undefined : `${unknown} is not a known field`;
}
