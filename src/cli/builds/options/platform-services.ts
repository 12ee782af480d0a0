import { usageError, withPrefix } from "../../../errors.ts";
import { formatPlatform, type Platform, parsePlatform } from "../../../image/platform.ts";
import { wording } from "../../../messages/wording.ts";

/** The profiles that `--platform-service` names, by platform. `option`: how each was given. */
export type PlatformServices = ReadonlyMap<string, { profile: string; option: string }>;

/** Parses `--platform-service PLATFORM=PROFILE`. */
export function parsePlatformServices(given: readonly string[]): PlatformServices {
  const profiles = new Map<string, { profile: string; option: string }>();
  for (const text of given) {
    const option = `--platform-service ${text}`;
    const [, platform, profile] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (platform === undefined || profile === undefined)
      throw usageError(
        `--platform-service takes PLATFORM=PROFILE, not ${JSON.stringify(text)}`,
        wording`For example: --platform-service linux/arm64=arm.${wording` ${{ command: "auth" }} saves and lists profiles.`}`,
      );
    const name = formatPlatform(readPlatform(platform, option));
    const other = profiles.get(name);
    if (other !== undefined)
      throw usageError(
        `${option}: ${other.option} has named a service for ${name}`,
        "Give each platform one.",
      );
    profiles.set(name, { profile, option });
  }
  return profiles;
}

function readPlatform(text: string, option: string): Platform {
  try {
    return parsePlatform(text);
  } catch (error) {
    throw withPrefix(error, option);
  }
}
