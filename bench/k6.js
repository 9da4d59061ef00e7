// Open-loop load by k6, for peers.sh and comparison.sh. It reads the whole reply and keeps nothing of it.
import http from 'k6/http';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    open: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE),
      timeUnit: '1s',
      duration: __ENV.DURATION,
      preAllocatedVUs: 1000,
      maxVUs: 1000,
    },
  },
};

const body = open(__ENV.BODY);
const params = { headers: { 'Content-Type': 'application/json' } };

export default function () {
  http.post(__ENV.URL, body, params);
}
