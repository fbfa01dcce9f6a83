// A table of invented houses, to try the service with; the same in every browser.

import { format } from "./csv.js";

const ROWS = 500;
const DISTRICTS = { north: 1, centre: 1.45, harbour: 1.2, hill: 1.3 };
const HEATING = { gas: 1, oil: 0.93, "heat pump": 1.06 };

/** The target of the table. */
export const SAMPLE_TARGET = "price";

/** Returns the table as a file, `houses.csv`. */
export function sampleTable() {
  const chance = uniform(20);
  const pick = (names) => names[Math.floor(chance() * names.length)];
  const rows = Array.from({ length: ROWS }, () => {
    const area = Math.round(35 + 185 * chance() ** 1.3);
    const rooms = Math.max(1, Math.round(area / 27 + 1.6 * (chance() - 0.5)));
    const age = Math.floor(95 * chance());
    const district = pick(Object.keys(DISTRICTS));
    const heating = pick(Object.keys(HEATING));
    const usual = 4200 * area * DISTRICTS[district] * HEATING[heating] * (1 - 0.004 * age) + 9000 * rooms;
    // Old houses differ more from each other than new ones do.
    const noise = Math.exp((0.06 + 0.0015 * age) * normal(chance));
    return [area, rooms, chance() < 0.04 ? "" : age, district, heating, 1000 * Math.round(usual * noise / 1000)].map(String);
  });
  const text = format([["area", "rooms", "age", "district", "heating", SAMPLE_TARGET], ...rows]);
  return new File([text], "houses.csv", { type: "text/csv" });
}

/** Numbers between 0 and 1 from a seed (Park and Miller 1988). */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

/** A standard normal number (Box and Muller 1958). */
function normal(chance) {
  return Math.sqrt(-2 * Math.log(chance())) * Math.cos(2 * Math.PI * chance());
}
