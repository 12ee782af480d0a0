import { requireSessionImage, resolveImageArgument } from "../../images/image-argument.ts";
import { type Connection, connect } from "../../service/connection.ts";
import { sessionKey } from "../../sessions/session-key.ts";
import { type Call, invocationFor } from "../call.ts";

/** A path in an image, in a tool's input. */
interface GivenPath {
  path: string;
  image?: string | undefined;
  session?: string | undefined;
}

/** Connects to the service and calls `action` with the resolved image and path. */
export async function withImagePath<Result>(
  { path, image, session }: GivenPath,
  call: Call,
  action: (place: { image: string; path: string }, connection: Connection) => Promise<Result>,
): Promise<Result> {
  const invocation = invocationFor({ session }, call);
  await using connection = await connect(invocation);
  const found =
    image === undefined
      ? requireSessionImage(connection.store, sessionKey(invocation))
      : await resolveImageArgument(connection, image);
  return await action({ image: found, path }, connection);
}
